<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Extension;
use Weft\Tests\Timing;
use Weft\Version;

require_once __DIR__ . '/../../bench/autoload.php';

/** What `scripts/release` packs, from the extension that this process has loaded. */
final class ReleaseTest extends TestCase
{
    private static string $directory;
    private static string $root;

    public static function setUpBeforeClass(): void
    {
        self::$root = \dirname(__DIR__, 2);
        self::$directory = \sys_get_temp_dir() . '/weft-release-' . \bin2hex(\random_bytes(6));
        self::command([self::$root . '/scripts/release', '--extension=' . Extension::library(), '--tag=' . Version::LIBRARY, self::$directory . '/first']);
    }

    public static function tearDownAfterClass(): void
    {
        \exec('rm -rf ' . \escapeshellarg(self::$directory));
    }

    public function testTheArchivesAreNamedAsPieAndPeopleLookForThem(): void
    {
        $php = \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;
        $machine = \php_uname('m');

        // https://github.com/php/pie/blob/main/docs/extension-maintainers.md, "Pre-packaged binary"
        $processor = ['aarch64' => 'arm64'][$machine] ?? $machine;
        self::assertFileExists(self::$directory . '/first/php_weft-' . Version::LIBRARY . "_php$php-$processor-linux-glibc" . (\PHP_ZTS ? '-zts' : '') . '.tgz');
        self::assertFileExists(self::$directory . '/first/weft-' . Version::LIBRARY . "-php$php-nts-linux-$machine-gnu.tgz");
        self::assertFileExists(self::$directory . '/first/weft-ext-' . Version::LIBRARY . '.tgz');
        self::command(['sh', '-c', 'cd ' . self::$directory . '/first && sha256sum --check --strict SHA256SUMS']);
    }

    public function testPieKnowsTheMachineAarch64AsArm64(): void
    {
        // Only the names matter: nothing is compressed.
        $programs = self::$directory . '/programs';
        \mkdir($programs);
        foreach (['uname' => 'echo aarch64', 'gzip' => 'cat >/dev/null', 'dpkg-deb' => 'for file; do :; done; touch "$file"'] as $name => $script) {
            \file_put_contents("$programs/$name", "#!/bin/sh\n$script\n");
            \chmod("$programs/$name", 0o755);
        }

        self::command(['env', "PATH=$programs:" . \getenv('PATH'), self::$root . '/scripts/release', '--extension=' . Extension::library(), self::$directory . '/arm']);

        $php = \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;
        self::assertFileExists(self::$directory . '/arm/php_weft-' . Version::LIBRARY . "_php$php-arm64-linux-glibc.tgz");
        self::assertFileExists(self::$directory . '/arm/weft-' . Version::LIBRARY . "-php$php-nts-linux-aarch64-gnu.tgz");
    }

    /** Composer, on which PIE is built, extracts with PHP's own class, which stumbles over an entry for "." itself. */
    public function testTheArchiveForPieHasTheExtensionAtItsRoot(): void
    {
        self::assertSame(['LICENSE', 'weft.so'], self::namesIn('php_weft-*.tgz'));

        $place = self::$directory . '/extracted';
        (new \PharData((\glob(self::$directory . '/first/php_weft-*.tgz') ?: [])[0] ?? self::fail('no archive')))->extractTo($place);
        self::assertFileExists("$place/weft.so");
        $source = (\glob(self::$directory . '/first/weft-ext-*.tgz') ?: [])[0] ?? self::fail('no source');
        (new \PharData($source))->extractTo($place);
        self::assertFileExists("$place/weft-ext-" . Version::LIBRARY . '/config.m4');
    }

    public function testTheSourceForPieDescribesTheExtension(): void
    {
        $names = self::namesIn('weft-ext-*.tgz');
        $prefix = 'weft-ext-' . Version::LIBRARY;
        foreach (['composer.json', 'config.m4', 'Makefile.frag', 'Cargo.lock', 'crates/ext/Cargo.toml', 'stubs/runtime.php'] as $file) {
            self::assertContains("$prefix/$file", $names);
        }

        $package = \json_decode((string) \file_get_contents(self::$root . '/packaging/extension/composer.json'), true, flags: \JSON_THROW_ON_ERROR);
        self::assertSame(['weft/ext-weft', 'php-ext', 'weft'], [$package['name'], $package['type'], $package['php-ext']['extension-name']]);
        self::assertSame(['pre-packaged-binary', 'composer-default'], $package['php-ext']['download-url-method']);
        // The extension's C refuses to be compiled for a thread-safe PHP.
        self::assertSame([true, false], [$package['php-ext']['support-nts'], $package['php-ext']['support-zts']]);
    }

    public function testTheSourceIsConfiguredByPhpize(): void
    {
        if (\shell_exec('command -v phpize autoconf') === null) {
            self::markTestSkipped('phpize or autoconf is missing');
        }
        $source = self::$directory . '/source';
        \mkdir($source);
        self::command(['tar', '-xzf', ...\glob(self::$directory . '/first/weft-ext-*.tgz'), '--strip-components=1', '-C', $source]);
        self::command(['sh', '-c', "cd $source && phpize && ./configure --enable-weft"]);

        $plan = self::command(['make', '-C', $source, '--dry-run']);

        self::assertMatchesRegularExpression('{cargo build --locked --package weft-ext --profile release}', $plan);
        self::assertMatchesRegularExpression("{PHP_CONFIG='/\S+php-config}", $plan);
        self::assertStringContainsString('modules/weft.so', $plan);
    }

    public function testTheSameCommitGivesTheSameBytesAtAnotherPlace(): void
    {
        $copy = self::$directory . '/copy';
        self::command(['cp', '-a', self::$directory . '/first', $copy]);
        $source = (\glob("$copy/weft-ext-*.tgz") ?: [])[0] ?? self::fail('no source');
        $bytes = (string) \file_get_contents($source);
        \file_put_contents($source, \substr_replace($bytes, ~$bytes[100], 100, 1));

        $output = self::refusal(['--extension=' . Extension::library(), "--compare=$copy"]);

        self::assertMatchesRegularExpression("{ $source differ: }m", $output);
        self::assertMatchesRegularExpression("{^release: [23] files have the same bytes, 1 differ from those in $copy\$}m", $output);
    }

    /** PIE takes a package's tag for its version: it asks for the release of that tag, and for archives with that name. */
    public function testATagThatIsNotTheVersionIsRefused(): void
    {
        $version = Version::LIBRARY;

        self::assertSame("release: the tag \"v$version\" is not the version \"$version\": PIE would look for php_weft-v{$version}_… and find no archive", self::refusal(["--tag=v$version"]));
    }

    public function testASystemThatIsNotThereIsRefused(): void
    {
        self::assertStringContainsString('chroot: there is no system "warty"; there are: bookworm ', self::refusal(['--php=warty', '--extension=' . Extension::library(), self::$directory . '/other']));
    }

    public function testAnUnpackedArchiveServesARequestAndIsInstalledAndRemoved(): void
    {
        $place = self::$directory . '/opt';
        \mkdir($place);
        self::command(['tar', '-xzf', ...\glob(self::$directory . '/first/weft-[0-9]*.tgz'), '--strip-components=1', '-C', $place]);
        $target = self::$directory . '/root';

        $installed = self::command(['env', "DESTDIR=$target", "$place/install"]);

        self::assertMatchesRegularExpression("{^installed $target/\S+/weft\.so and $target/\S+/weft\.ini\$}m", $installed);
        $extension = \glob("$target" . \PHP_EXTENSION_DIR . '/weft.so')[0] ?? self::fail('no extension');

        $address = '127.0.0.1:' . Port::free();
        self::command([\PHP_BINARY, '-d', "extension=$extension", "$place/bin/weft", 'new', self::$directory . '/app']);
        $server = \proc_open([\PHP_BINARY, '-d', "extension=$extension", self::$directory . '/app/app.php'], [2 => ['file', self::$directory . '/log', 'w']], $pipes, null, ['LISTEN' => $address] + \getenv());
        try {
            Timing::until(static fn(): bool => \str_starts_with((string) @\file_get_contents("http://$address/"), 'POST /greetings'), 'an answer');
        } finally {
            \proc_terminate($server);
            \proc_close($server);
        }

        self::command(['env', "DESTDIR=$target", "$place/install", '--remove']);
        self::assertFileDoesNotExist($extension);
    }

    public function testTheGuideInstallsAnArchive(): void
    {
        $guide = (string) \file_get_contents(self::$root . '/docs/guides/install.md');
        self::assertSame(1, \preg_match('/^## From an archive.*?^```sh\n(tar -xzf (\S+).*?)^php app\.php\ncurl/ms', $guide, $block));
        $place = self::$directory . '/guide';
        \mkdir("$place/programs", recursive: true);
        \mkdir("$place/ini");
        \copy((\glob(self::$directory . '/first/weft-[0-9]*.tgz') ?: [])[0] ?? self::fail('no archive'), "$place/$block[2]");
        // Nothing of the system changes.
        \file_put_contents("$place/programs/sudo", "#!/bin/sh\nDESTDIR=$place/root exec \"$@\"\n");
        \file_put_contents("$place/programs/apt", "#!/bin/sh\necho \"$@\" >$place/apt\n");
        \file_put_contents("$place/ini/weft.ini", 'extension=' . Extension::library() . "\n");
        \array_map(static fn(string $program): bool => \chmod($program, 0o755), \glob("$place/programs/*") ?: []);

        self::command([
            'env', "PATH=$place/programs:" . \getenv('PATH'), "PHP_INI_SCAN_DIR=:$place/ini",
            'bash', '-euc', "cd $place\n" . \str_replace('/tmp/my-app', "$place/my-app", $block[1]) . "test \"\$PWD\" = $place/my-app",
        ]);

        self::assertFileExists("$place/my-app/app.php");
        self::assertFileExists("$place/root" . \PHP_EXTENSION_DIR . '/weft.so');
        // The libraries with which `make test-install` serves a request.
        self::assertSame(1, \preg_match('/^libraries="(.+)"$/m', (string) \file_get_contents(self::$root . '/scripts/test-install'), $libraries));
        self::assertSame("install $libraries[1]\n", (string) \file_get_contents("$place/apt"));
    }

    public function testADebianPackageHasTheExtensionAndItsIniFile(): void
    {
        $packages = \glob(self::$directory . '/first/*.deb') ?: [];
        if ($packages === []) {
            self::markTestSkipped('dpkg-deb is missing');
        }
        $contents = self::command(['dpkg-deb', '--contents', ...$packages]);
        self::assertStringContainsString('.' . \PHP_EXTENSION_DIR . '/weft.so', $contents);
        self::assertStringContainsString('mods-available/weft.ini', $contents);
        self::assertMatchesRegularExpression('{^ ?Depends: phpapi-\d+}m', self::command(['dpkg-deb', '--info', ...$packages]));

        // A development version or a release candidate is older than its release.
        $version = self::command(['dpkg-deb', '--field', $packages[0], 'Version']);
        self::assertStringContainsString("_{$version}_", $packages[0]);
        self::assertSame(\str_replace('-', '~', Version::LIBRARY), $version);
        $release = \explode('-', Version::LIBRARY)[0];
        self::command(['dpkg', '--compare-versions', $version, $release === Version::LIBRARY ? 'eq' : 'lt', $release]);
    }

    public function testAnExtensionThatDoesNotLoadIsRefusedWithTheReasonOfTheLoader(): void
    {
        $place = self::$directory . '/refused';
        \mkdir($place);
        self::command(['cp', self::$root . '/packaging/install', self::$root . '/packaging/weft.ini', $place]);
        \file_put_contents("$place/weft.so", 'not a library');

        \exec("DESTDIR=$place/root $place/install 2>&1", $output, $code);

        self::assertSame(1, $code);
        $said = \implode("\n", $output);
        self::assertStringContainsString('install: PHP ' . \PHP_VERSION . " NTS does not load $place/weft.so:", $said);
        self::assertStringContainsString("$place/weft.so: file too short", $said);
        self::assertDirectoryDoesNotExist("$place/root");
    }

    /** As on a system whose administrator gives nobody else any rights by default. */
    public function testWhatIsInstalledCanBeReadByEveryUserWhateverTheUmask(): void
    {
        $place = self::$directory . '/umask';
        self::command(['sh', '-c', 'umask 077 && mkdir "$1" && tar -xzf "$2" --strip-components=1 -C "$1" && DESTDIR=$1/root "$1/install"', 'sh', $place, ...\glob(self::$directory . '/first/weft-[0-9]*.tgz')]);

        $found = self::command(['find', "$place/root", '-mindepth', '1', '-printf', "%m %y\n"]);

        self::assertSame(['644 f', '755 d'], \array_values(\array_unique(self::sorted(\explode("\n", $found)))));
    }

    public function testRemovingNamesWhatWasThere(): void
    {
        $place = self::$directory . '/nothing';
        $installer = self::$root . '/packaging/install';
        $remove = ['env', "DESTDIR=$place", $installer, '--remove'];
        self::command(['env', "DESTDIR=$place", $installer, Extension::library()]);

        self::assertMatchesRegularExpression("{^removed $place/\S+/weft\.so and $place/\S+/weft\.ini\$}m", self::command($remove));
        self::assertMatchesRegularExpression("{^nothing to remove: there is neither $place/\S+/weft\.so nor $place/\S+/weft\.ini\$}m", self::command($remove));
    }

    /**
     * @param list<string> $lines
     *
     * @return list<string>
     */
    private static function sorted(array $lines): array
    {
        \sort($lines);

        return $lines;
    }

    /** @return list<string> */
    private static function namesIn(string $pattern): array
    {
        return \explode("\n", \trim(self::command(['tar', '-tzf', ...\glob(self::$directory . "/first/$pattern")])));
    }

    /** @param list<string> $options */
    private static function refusal(array $options): string
    {
        \exec(\implode(' ', \array_map(\escapeshellarg(...), [self::$root . '/scripts/release', ...$options])) . ' 2>&1', $output, $code);
        self::assertSame(1, $code, \implode("\n", $output));

        return \implode("\n", $output);
    }

    /** @param list<string> $command */
    private static function command(array $command): string
    {
        \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));

        return \implode("\n", $output);
    }
}
