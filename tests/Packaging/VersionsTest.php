<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Version;

/** What takes an archive takes that of its own version, where archives of others lie beside it. */
final class VersionsTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-versions-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->directory}/release", recursive: true);
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testTheInstallationOfAnotherVersionIsNotTried(): void
    {
        if (\posix_geteuid() !== 0) {
            self::markTestSkipped('scripts/test-install needs root');
        }
        foreach (['0.0.9', '99.0.0'] as $version) {
            \touch("{$this->directory}/release/weft-$version-php8.2-nts-linux-" . \php_uname('m') . '-gnu.tgz');
        }

        self::assertSame("test-install: {$this->directory}/release has no archive of Weft " . Version::LIBRARY . ": make release", $this->refusal('test-install'));
        self::assertSame(
            'test-install: the archive of Weft ' . Version::LIBRARY . ' for PHP 8.2 on ' . \php_uname('m') . " is missing in {$this->directory}/release: make release, or release-arm64",
            $this->refusal('test-install', 'bookworm'),
        );
    }

    /** @return array<string, array{string, array<string, string>}> */
    public static function dockerfiles(): array
    {
        return [
            'Dockerfile' => ['Dockerfile', ['PHP' => '8.4']],
            'examples/starter/Dockerfile' => ['examples/starter/Dockerfile', ['WEFT' => Version::LIBRARY, 'PHP' => '8.4']],
        ];
    }

    /**
     * @dataProvider dockerfiles
     *
     * @param array<string, string> $arguments
     */
    #[DataProvider('dockerfiles')]
    public function testAnImageHasTheVersionOfItsLibrary(string $file, array $arguments): void
    {
        $root = \dirname(__DIR__, 2);
        foreach (['tmp', 'opt', 'bin'] as $name) {
            \mkdir("{$this->directory}/$name");
        }
        \copy("$root/Cargo.toml", "{$this->directory}/tmp/Cargo.toml");
        foreach (['0.0.9', Version::LIBRARY, '99.0.0'] as $version) {
            $name = "weft-$version-php8.4-nts-linux-" . \php_uname('m') . '-gnu';
            \mkdir("{$this->directory}/$name");
            \file_put_contents("{$this->directory}/$name/install", "#!/bin/sh\necho installed $version\n");
            \chmod("{$this->directory}/$name/install", 0o755);
            \exec("tar -C {$this->directory} -czf {$this->directory}/tmp/$name.tgz $name");
        }
        self::assertSame(1, \preg_match('/^RUN (mkdir \/opt\/weft (?:.*\\\\\n)*.*)$/m', (string) \file_get_contents("$root/$file"), $step));
        $script = \strtr($step[1], ['/opt/' => "{$this->directory}/opt/", '/tmp/' => "{$this->directory}/tmp/", '/usr/local/bin/' => "{$this->directory}/bin/"]);
        $settings = \array_map(static fn(string $name, string $value): string => "$name=$value", \array_keys($arguments), $arguments);

        \exec('env ' . \implode(' ', $settings) . ' sh -c ' . \escapeshellarg($script) . ' 2>&1', $output, $code);

        self::assertSame([0, ['installed ' . Version::LIBRARY]], [$code, $output]);
        self::assertSame([], \glob("{$this->directory}/tmp/*.tgz"));
    }

    private function refusal(string $script, string ...$names): string
    {
        $command = ['env', "WEFT_VAR={$this->directory}", \dirname(__DIR__, 2) . "/scripts/$script", ...$names];
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);
        self::assertSame(1, $code, \implode("\n", $output));

        return \implode("\n", $output);
    }
}
