<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;
use Weft\Version;

/** How `scripts/release` and `make release` build for each version of PHP. A script takes the place of cargo and links a small library. */
final class ReleaseBuildTest extends TestCase
{
    private string $directory;
    private string $php;
    private string $system;

    protected function setUp(): void
    {
        if (\shell_exec('command -v cc') === null || \shell_exec('command -v readelf') === null) {
            self::markTestSkipped('cc or readelf is missing');
        }
        $this->directory = \sys_get_temp_dir() . '/weft-release-build-' . \bin2hex(\random_bytes(6));
        // Another PHP than this one, so that nothing tries to load the library.
        [$this->system, $this->php] = \PHP_VERSION_ID >= 80600 ? ['bookworm', '8.2'] : ['php8.6', '8.6'];
        $this->checkout();
        $this->headers();
        $this->program('cargo', <<<'SH'
            echo "$*" >"$CALLS"
            "$PHP" -i >>"$CALLS"
            "$PHP_CONFIG" --includes >>"$CALLS"
            mkdir -p "$CARGO_TARGET_DIR/release"
            printf '%s' "$SOURCE" | cc -shared -fPIC -nostartfiles -x c - -x none $LIBRARIES -o "$CARGO_TARGET_DIR/release/libweft.so"
            SH);
    }

    protected function tearDown(): void
    {
        isset($this->directory) && \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testThePhpOfAnotherSystemIsBuiltForWithItsHeadersAlone(): void
    {
        [$code, $output] = $this->release(['SOURCE' => '#include <unistd.h>' . "\n" . 'int f(void) { return getpid(); }']);

        self::assertSame(0, $code, $output);
        $machine = \php_uname('m');
        self::assertFileExists("{$this->directory}/out/weft-" . Version::LIBRARY . "-php{$this->php}-nts-linux-$machine-gnu.tgz");
        self::assertStringContainsString("release: the extension was not loaded: PHP {$this->php} is not here", $output);
        self::assertSame([
            'build --quiet --locked --release --package weft-ext',
            'Thread Safety => disabled',
            'Debug Build => no',
            'PHP API => 20991231',
            "-I{$this->directory}/var/chroots/{$this->system}.headers/usr/include/php/20991231",
        ], \file("{$this->directory}/calls", \FILE_IGNORE_NEW_LINES));
        if (\shell_exec('command -v dpkg-deb') !== null) {
            $packages = \glob("{$this->directory}/out/php{$this->php}-weft_*.deb") ?: [];
            self::assertCount(1, $packages);
            $depends = (string) \shell_exec('dpkg-deb --field ' . \escapeshellarg($packages[0]) . ' Depends');
            self::assertMatchesRegularExpression("/^phpapi-20991231, php{$this->php}-common, libc6 \(>= 2\.[\d.]+\)$/", \trim($depends));
            self::assertStringContainsString('./usr/lib/php/20991231/weft.so', (string) \shell_exec('dpkg-deb --contents ' . \escapeshellarg($packages[0])));
        }
    }

    /** Such as one that was linked on Debian 13, whose loader says nothing about it. */
    public function testALibraryThatNeedsANewerGlibcThanThePromisedOneIsRefused(): void
    {
        \file_put_contents("{$this->directory}/versions", 'GLIBC_2.39 { global: pidfd_spawnp; };');
        \file_put_contents("{$this->directory}/libc.c", 'int pidfd_spawnp(void) { return 0; }');
        $this->must(['cc', '-shared', '-fPIC', '-nostdlib', '-Wl,-soname,libc.so.6', "-Wl,--version-script={$this->directory}/versions", "{$this->directory}/libc.c", '-o', "{$this->directory}/libnewer.so"]);

        [$code, $output] = $this->release([
            'SOURCE' => 'int pidfd_spawnp(void); int f(void) { return pidfd_spawnp(); }',
            'LIBRARIES' => "{$this->directory}/libnewer.so -nostdlib",
        ]);

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('release: the extension needs glibc 2.39 (pidfd_spawnp), and a release promises 2.36: build it on Debian 12', $output);
        self::assertSame([], \glob("{$this->directory}/out/*.tgz"));
    }

    public function testTheGuideNamesThePromisedGlibc(): void
    {
        self::assertSame(1, \preg_match('/ promised_glibc=([\d.]+)$/m', (string) \file_get_contents(self::root() . '/scripts/release'), $promised));

        self::assertStringContainsString("glibc $promised[1] ", (string) \file_get_contents(self::root() . '/docs/guides/install.md'));
    }

    public function testMakeReleaseBuildsEachVersionOfPhpOnceIntoAnEmptyDirectory(): void
    {
        [$code, $output] = $this->makeRelease('touch "$WEFT_VAR/release/$1"');

        self::assertSame(0, $code, $output);
        self::assertSame(['--php=noble', '--php=trixie', 'SHA256SUMS'], \array_map(\basename(...), \glob("{$this->directory}/var/release/*") ?: []));
    }

    public function testMakeReleaseFailsWithASystem(): void
    {
        [$code, $output] = $this->makeRelease('touch "$WEFT_VAR/release/$1"; exit 3');

        self::assertNotSame(0, $code, $output);
        self::assertSame(['--php=noble', 'SHA256SUMS'], \array_map(\basename(...), \glob("{$this->directory}/var/release/*") ?: []));
    }

    /** @return array{int, string} */
    private function makeRelease(string $script): array
    {
        $place = "{$this->directory}/make";
        \mkdir("$place/scripts", recursive: true);
        \mkdir("{$this->directory}/var/release");
        \copy(self::root() . '/Makefile', "$place/Makefile");
        \touch("{$this->directory}/var/weft.profdata");
        \touch("{$this->directory}/var/release/weft-0.1.0-php8.2-nts-linux-x86_64-gnu.tgz");
        $programs = [
            'setup' => ':',
            'release' => "mkdir -p \"\$WEFT_VAR/release\"; touch \"\$WEFT_VAR/release/SHA256SUMS\"\n$script",
            'chroot' => 'printf "%s\n" "noble noble 8.3 Ubuntu" "trixie trixie 8.4 Debian 13" "forky forky 8.4 Debian 14"',
        ];
        foreach ($programs as $name => $body) {
            \file_put_contents("$place/scripts/$name", "#!/bin/sh\n$body\n");
            \chmod("$place/scripts/$name", 0o755);
        }

        return self::execute(['env', '-u', 'MAKEFLAGS', '-u', 'MAKELEVEL', "WEFT_VAR={$this->directory}/var", 'make', '-C', $place, 'release']);
    }

    /**
     * @param array<string, string> $environment
     *
     * @return array{int, string}
     */
    private function release(array $environment): array
    {
        $environment += [
            'PATH' => "{$this->directory}/bin:" . \getenv('PATH'),
            'WEFT_VAR' => "{$this->directory}/var",
            'CARGO_TARGET_DIR' => "{$this->directory}/target",
            'CALLS' => "{$this->directory}/calls",
            'LIBRARIES' => '',
        ];
        $settings = [];
        foreach ($environment as $name => $value) {
            $settings[] = "$name=$value";
        }

        return self::execute(['env', ...$settings, "{$this->directory}/checkout/scripts/release", '--no-sbom', "--php={$this->system}", "{$this->directory}/out"]);
    }

    /** A clean clone with the scripts as they are now: a release is built from a commit. */
    private function checkout(): void
    {
        $clone = "{$this->directory}/checkout";
        $this->must(['git', 'clone', '--quiet', '--shared', self::root(), $clone]);
        foreach (['scripts/release', 'scripts/chroot', 'packaging'] as $file) {
            $this->must(['cp', '-a', '--no-target-directory', self::root() . "/$file", "$clone/$file"]);
        }
        $this->must(['git', '-C', $clone, '-c', 'user.name=Test', '-c', 'user.email=test@localhost', 'commit', '--quiet', '--all', '--allow-empty', '-m', 'now']);
    }

    /** As Debian's package php-dev has them, whose php-config names directories of its own system. */
    private function headers(): void
    {
        $headers = "{$this->directory}/var/chroots/{$this->system}.headers/usr";
        \mkdir("$headers/include/php/20991231/main", recursive: true);
        \mkdir("$headers/bin");
        \file_put_contents("$headers/include/php/20991231/main/php_version.h", "#define PHP_VERSION \"{$this->php}.0RC3\"\n");
        \file_put_contents("$headers/include/php/20991231/main/php.h", "#define PHP_API_VERSION 20991231\n");
        \file_put_contents("$headers/include/php/20991231/main/build-defs.h", "#define PHP_EXTENSION_DIR       \"/usr/lib/php/20991231\"\n");
        \file_put_contents("$headers/include/php/20991231/main/php_config.h", "#define ZEND_DEBUG 0\n/* #undef ZTS */\n");
        \file_put_contents("$headers/bin/php-config{$this->php}", "echo -I/usr/include/php/20991231\n");
    }

    private function program(string $name, string $script): void
    {
        @\mkdir("{$this->directory}/bin");
        \file_put_contents("{$this->directory}/bin/$name", "#!/bin/sh\nset -e\n$script\n");
        \chmod("{$this->directory}/bin/$name", 0o755);
    }

    /** @param list<string> $command */
    private function must(array $command): void
    {
        [$code, $output] = self::execute($command);
        self::assertSame(0, $code, $output);
    }

    /**
     * @param list<string> $command
     *
     * @return array{int, string}
     */
    private static function execute(array $command): array
    {
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);

        return [$code, \implode("\n", $output)];
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
