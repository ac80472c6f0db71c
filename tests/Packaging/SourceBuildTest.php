<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;

/** The build from source that PIE runs: phpize, configure and make as a user, `make install` by sudo. A script takes the place of cargo. */
final class SourceBuildTest extends TestCase
{
    private static string $directory;
    private static string $rust;

    public static function setUpBeforeClass(): void
    {
        if (\shell_exec('command -v phpize') === null || \shell_exec('command -v autoconf') === null || \shell_exec('command -v cc') === null) {
            self::markTestSkipped('phpize, autoconf or cc is missing');
        }
        $root = \dirname(__DIR__, 2);
        self::$directory = \sys_get_temp_dir() . '/weft-source-build-' . \bin2hex(\random_bytes(6));
        \mkdir(self::$directory . '/source/crates/ext/src', recursive: true);
        \mkdir(self::$directory . '/clang');
        \touch(self::$directory . '/clang/libclang-14.so.1');
        foreach (['Cargo.toml', 'Cargo.lock', 'crates/ext/src/lib.rs', 'stubs', 'protos'] as $file) {
            self::command(['cp', '-a', '--no-target-directory', "$root/$file", self::$directory . "/source/$file"]);
        }
        self::command(['sh', '-c', 'cp "$1"/packaging/extension/* "$2"', 'sh', $root, self::$directory . '/source']);
        \preg_match('/^rust-version = "(.+)"$/m', (string) \file_get_contents("$root/Cargo.toml"), $needed);
        self::$rust = $needed[1] ?? self::fail('Cargo.toml does not say which Rust it needs');
        self::cargo('old', '1.63.0');
        self::cargo('home/.cargo/bin', self::$rust . '.0');
        self::command(['sh', '-c', 'cd "$1" && phpize', 'sh', self::$directory . '/source']);
    }

    public static function tearDownAfterClass(): void
    {
        isset(self::$directory) && \exec('rm -rf ' . \escapeshellarg(self::$directory));
    }

    /** Under sudo there is often no toolchain, and PIE ends `make install` after 300 seconds. */
    public function testInstallingCopiesWhatMakeHasBuilt(): void
    {
        [$code, $output] = self::configure();
        self::assertSame(0, $code, $output);
        $make = ['make', '-C', self::$directory . '/source'];

        self::command($make);
        self::command($make);
        self::command([...$make, 'CARGO=/bin/false', 'INSTALL_ROOT=' . self::$directory . '/root', 'install']);

        self::assertFileExists(self::$directory . '/root' . \PHP_EXTENSION_DIR . '/weft.so');
        self::assertSame(1, self::builds());

        // The compiler sees a change.
        \touch(self::$directory . '/source/crates/ext/src/lib.rs', \time() + 5);
        self::command($make);
        self::assertSame(2, self::builds());
    }

    public function testTheGuideSaysWhichRustItNeeds(): void
    {
        self::assertStringContainsString('Rust ' . self::$rust . ' or newer', (string) \file_get_contents(\dirname(__DIR__, 2) . '/docs/guides/install.md'));
    }

    /** As Debian's: that of rustup is often behind it on the PATH, or not on it. */
    public function testAnOlderCargoOnThePathIsPassedOver(): void
    {
        [$code, $output] = self::configure();

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('checking for cargo of Rust ' . self::$rust . ' or newer... ' . self::$directory . '/home/.cargo/bin/cargo', $output);
    }

    public function testWithoutACargoThatIsNewEnoughItSaysWhichIsThere(): void
    {
        [$code, $output] = self::configure(['HOME' => self::$directory . '/nobody']);

        self::assertSame(1, $code, $output);
        $old = self::$directory . '/old/cargo';
        self::assertMatchesRegularExpression("{error: Weft needs cargo of Rust " . \preg_quote(self::$rust) . " or newer, found $old 1\.63\.0\. Install Rust from https://rustup\.rs, or a binary package of Weft$}m", $output);
    }

    public function testWithoutLibclangItSaysSo(): void
    {
        [$code, $output] = self::configure(['LIBCLANG_PATH' => self::$directory]);

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('error: libclang is missing', $output);
    }

    /**
     * @param array<string, string> $environment
     *
     * @return array{int, string}
     */
    private static function configure(array $environment = []): array
    {
        $environment += ['HOME' => self::$directory . '/home', 'LIBCLANG_PATH' => self::$directory . '/clang'];
        // Without a cargo of this machine.
        $path = \array_filter(\explode(':', (string) \getenv('PATH')), static fn(string $directory): bool => !\is_file("$directory/cargo"));
        $environment['PATH'] = self::$directory . '/old:' . \implode(':', $path);
        $settings = [];
        foreach ($environment as $name => $value) {
            $settings[] = "$name=$value";
        }

        return self::execute(['env', '--chdir=' . self::$directory . '/source', ...$settings, './configure', '--enable-weft']);
    }

    private static function builds(): int
    {
        return \substr_count((string) \file_get_contents(self::$directory . '/builds'), "build --locked --package weft-ext --profile release\n");
    }

    private static function cargo(string $place, string $version): void
    {
        $file = self::$directory . "/$place/cargo";
        \mkdir(\dirname($file), recursive: true);
        \file_put_contents($file, \strtr(<<<'SH'
            #!/bin/sh
            set -e
            case "$1" in --version) echo 'cargo VERSION (0123456789 2026-01-01)'; exit ;; esac
            echo "$*" | sed 's/ --target-dir .*//' >>BUILDS
            for directory; do :; done
            mkdir -p "$directory/release"
            echo 'int weft(void) { return 1; }' | cc -shared -fPIC -x c - -o "$directory/release/libweft.so"
            SH, ['VERSION' => $version, 'BUILDS' => self::$directory . '/builds']));
        \chmod($file, 0o755);
    }

    /** @param list<string> $command */
    private static function command(array $command): void
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
}
