<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Internal\LoadedExtension;
use Weft\Tests\Extension;
use Weft\Version;

/** The commands of a library that was updated without its extension. */
final class ExtensionMismatchTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-mismatch-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testRunStartsNoWorker(): void
    {
        \file_put_contents("{$this->directory}/app.php", '<?php touch(__DIR__ . "/started");');

        [$code, $output] = $this->weft(['run', "{$this->directory}/app.php"]);

        self::assertSame($this->refusal(), $output);
        self::assertSame(1, $code);
        self::assertFileDoesNotExist("{$this->directory}/started");
    }

    public function testACommandAboutTheBusIsRefusedInOneLine(): void
    {
        \file_put_contents("{$this->directory}/bus.php", '<?php return Weft\Bus\Bus::connect("memory:");');

        [$code, $output] = $this->weft(['setup', "{$this->directory}/bus.php"]);

        self::assertSame($this->refusal(), $output);
        self::assertSame(1, $code);
    }

    public function testDoctorSaysWhatToDo(): void
    {
        [$code, $output] = $this->weft(['doctor']);

        self::assertSame(1, $code);
        self::assertStringContainsString(
            'with the interface hash ' . Version::INTERFACE_HASH . ", but the library has 00000000\n       Both were built from different sources. Install the same version of both",
            $output,
        );
    }

    /** @dataProvider loadedFiles */
    #[DataProvider('loadedFiles')]
    public function testTheAdviceIsAboutTheFileThatPhpHasLoaded(string $belongings, ?string $file, string $advice): void
    {
        foreach (\array_filter(\explode(' ', $belongings)) as $name) {
            \touch("{$this->directory}/{$name}");
        }

        $given = (new LoadedExtension($this->directory, $file === null ? null : \strtr($file, ['ROOT' => $this->directory])))->advice();

        self::assertSame(\strtr($advice, ['ROOT' => $this->directory]), $given);
    }

    /** @return iterable<string, array{string, string|null, string}> */
    public static function loadedFiles(): iterable
    {
        $installed = '/usr/lib/php/20220829/weft.so';
        yield 'the build of the checkout' => ['Cargo.toml', 'ROOT/target/release/libweft.so', 'Run `make build` in ROOT'];
        yield 'the build for the tests' => ['Cargo.toml', 'ROOT/target/debug/libweft.so', 'Run `make build-debug` in ROOT'];
        yield 'the installed extension' => ['Cargo.toml', $installed, "Run `sudo make install` in ROOT: PHP has loaded {$installed}, which `make build` does not replace"];
        yield 'the build of another checkout' => ['Cargo.toml', '/srv/weft/target/release/libweft.so', 'Run `make build` in ROOT, and load ROOT/target/release/libweft.so in place of /srv/weft/target/release/libweft.so'];
        yield 'an unknown file' => ['Cargo.toml', null, 'Run `sudo make install` in ROOT: PHP has loaded an installed extension, which `make build` does not replace'];
        yield 'the library of an archive' => ['install weft.so', $installed, 'Run `sudo ROOT/install`, which installs the extension of this archive'];
        yield 'the library of Composer' => ['', $installed, 'Install the same version of both: pie install weft/ext-weft:' . Version::LIBRARY . ', or the same archive'];
    }

    /** The advice is about the file that is mapped, also where it was replaced since. */
    public function testTheFileIsTheOneThatTheProcessHasMapped(): void
    {
        $copy = "{$this->directory}/it's weft/weft.so";
        \mkdir(\dirname($copy));
        \copy(Extension::library(), $copy);
        $program = 'unlink($argv[2]); require $argv[1]; echo Weft\Internal\LoadedExtension::ofThisProcess()->advice();';

        \exec(\implode(' ', \array_map(\escapeshellarg(...), [\PHP_BINARY, '-n', '-d', "extension=\"$copy\"", '-r', $program, \dirname(__DIR__, 2) . '/autoload.php', $copy])) . ' 2>&1', $output);

        self::assertStringContainsString("PHP has loaded {$copy}, which", \implode("\n", $output));
    }

    private function refusal(): string
    {
        return 'weft: Weft library ' . Version::LIBRARY . ' with the interface hash 00000000 does not match the loaded extension with ' . Version::INTERFACE_HASH
            . '. They were built from different sources. Install the same version of both: pie install weft/ext-weft:' . Version::LIBRARY
            . ", or the same archive\nHelp: weft explain cli-extension-mismatch\n";
    }

    /**
     * Of a copy of the library that expects another interface.
     *
     * @param list<string> $arguments
     *
     * @return array{int, string}
     */
    private function weft(array $arguments): array
    {
        $library = "{$this->directory}/library";
        \mkdir($library);
        foreach (['autoload.php', 'bin', 'src'] as $name) {
            \exec(\sprintf('cp -a %s %s', \escapeshellarg(\dirname(__DIR__, 2) . "/{$name}"), \escapeshellarg($library)));
        }
        $version = (string) \file_get_contents("{$library}/src/Version.php");
        \file_put_contents("{$library}/src/Version.php", \str_replace("'" . Version::INTERFACE_HASH . "'", "'00000000'", $version));
        $command = ['timeout', '60', \PHP_BINARY, '-d', 'extension=' . Extension::library(), "{$library}/bin/weft", ...$arguments];
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);

        return [$code, \implode("\n", $output) . "\n"];
    }
}
