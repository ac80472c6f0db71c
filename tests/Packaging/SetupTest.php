<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** How `scripts/setup` calls apt, and what it says where there is none. Scripts take its place on the PATH, so nothing is installed. */
final class SetupTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-setup-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->directory}/bin", recursive: true);
        // The programs that it needs, and no others: everything that it could install is missing.
        foreach (['bash', 'cat', 'cut', 'dirname', 'env', 'grep', 'head', 'sed', 'sort', 'tail', 'touch'] as $program) {
            \symlink(\trim((string) \shell_exec("command -v {$program}")), "{$this->directory}/bin/{$program}");
        }
        $this->system('debian', '', '12');
        $this->program('sudo', 'exec "$@"');
        // They would change files of the system.
        foreach (['chmod', 'mkdir', 'rm', 'rmdir', 'systemctl'] as $program) {
            $this->program($program, ':');
        }
        $this->program('tee', 'cat >/dev/null');
        // The status of installed packages answers for apt. Lists, which an update writes, answer for everything else; old ones lack most of it.
        $this->program('apt-cache', <<<'SH'
            lists=$(cat "$LISTS" 2>/dev/null)
            case "$1 $2 $lists" in
            'policy apt '* | 'policy gcc old' | 'policy '*' new') echo '  Candidate: 1.0' ;;
            'madison apt '?*) echo 'apt | 2.6.1 | http://deb.debian.org/debian bookworm/main amd64 Packages' ;;
            'depends php-cli '?*) echo '  Depends: php8.4-cli' ;;
            'search --names-only '?*) echo 'mysql-client-core-8.0 - of an older release'; echo 'mysql-client-core-8.4 - MySQL database core client binaries' ;;
            esac
            SH);
        // The installation fails: what follows it is not the subject.
        $this->program('apt-get', <<<'SH'
            echo "$*" >>"$CALLS"
            case "$1" in
            update) echo new >"$LISTS" ;;
            *) exit 1 ;;
            esac
            SH);
    }

    protected function tearDown(): void
    {
        isset($this->directory) && \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    /** As in the official images of Debian: without lists apt knows only what is installed. */
    public function testASystemWithoutPackageListsFetchesThemBeforeItNamesPackages(): void
    {
        $calls = $this->callsOfAptGet();

        self::assertSame(['update', 'install'], self::subcommands($calls), 'the lists are fetched once');
        self::assertMatchesRegularExpression('/ gcc (.* )?php8\.4-cli /', $calls[1]);
    }

    public function testOldPackageListsAreRenewedBeforeUnknownPackagesAreLeftOut(): void
    {
        \file_put_contents("{$this->directory}/lists", 'old');

        $calls = $this->callsOfAptGet();

        self::assertSame(['update', 'install'], self::subcommands($calls));
        self::assertMatchesRegularExpression('/ gcc (.* )?php8\.4-cli /', $calls[1]);
    }

    /** A release without some libraries is not asked for them again with every `make test`. */
    public function testPackageListsAreNotRenewedWhereNothingCanBeInstalled(): void
    {
        \file_put_contents("{$this->directory}/lists", 'of another release');

        self::assertSame([], $this->callsOfAptGet());
    }

    /**
     * @dataProvider relatives
     */
    #[DataProvider('relatives')]
    public function testASystemMadeFromDebianOrUbuntuInstallsTheirPackages(string $id, string $like, string $version): void
    {
        $this->system($id, $like, $version);

        self::assertSame(['update', 'install'], self::subcommands($this->callsOfAptGet()));
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function relatives(): iterable
    {
        yield 'Ubuntu' => ['ubuntu', 'debian', '24.04'];
        yield 'Linux Mint' => ['linuxmint', 'ubuntu debian', '22'];
        yield 'Linux Mint from Debian' => ['linuxmint', 'debian', '6'];
        yield 'Raspberry Pi OS' => ['raspbian', 'debian', '12'];
        yield 'Pop!_OS' => ['pop', 'ubuntu debian', '24.04'];
    }

    public function testAReleaseWhosePhpIsTooOldIsNamed(): void
    {
        $this->program('apt-cache', <<<'SH'
            case "$1 $2" in
            'madison apt') echo 'apt | 2.4' ;;
            'depends php-cli') echo '  Depends: php8.1-cli' ;;
            esac
            SH);

        self::assertSame([], $this->callsOfAptGet());
        self::assertStringContainsString('setup: the packages of this release have PHP 8.1, Weft needs 8.2.4 or newer: another source', $this->printed());
    }

    /** Composer refuses the checkout otherwise, because its extension is not built yet. */
    public function testAnotherSystemIsToldHowToGetThePhpLibraries(): void
    {
        $this->system('fedora', '', '42');

        self::assertSame([], $this->callsOfAptGet());
        self::assertMatchesRegularExpression('{^setup: missing: (.* )?gcc .*\(names of Debian\'s packages\)}m', $this->printed());
        if (!\is_file('/usr/share/php/Psr/Log/autoload.php') && !\is_file(\dirname(__DIR__, 2) . '/vendor/autoload.php')) {
            self::assertStringContainsString('composer install --ignore-platform-req=ext-weft', $this->printed());
        }
        self::assertStringNotContainsString('found only where Debian', $this->printed());
    }

    public function testTheAdviceAboutComposerNamesThePlatformRequirement(): void
    {
        $output = $this->function('name_missing', "missing=(gcc php-psr-log)\nphp_libraries=' php-psr-log'\ntiers=(demo)\nroot=/srv/weft\nhas_apt() { return 1; }\nfail() { echo \"\$*\"; exit 1; }");

        self::assertStringContainsString("setup: missing: gcc (names of Debian's packages)", $output);
        self::assertStringContainsString('setup: missing: php-psr-log. Run in /srv/weft: composer install --ignore-platform-req=ext-weft', $output);
    }

    /** @dataProvider oldVersions */
    #[DataProvider('oldVersions')]
    public function testAPhpThatIsTooOldIsRefusedBeforeAnythingIsInstalled(string $version): void
    {
        $this->program('php', "echo {$version}");

        self::assertSame([], $this->callsOfAptGet());
        self::assertSame("setup: PHP {$version} found on the PATH, Weft needs 8.2.4 or newer\n", $this->printed());
    }

    /** @return iterable<string, array{string}> */
    public static function oldVersions(): iterable
    {
        yield 'of 8.1' => ['8.1.34'];
        yield 'before the collector knew suspended fibers' => ['8.2.3'];
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testLibclangIsFoundWhereOtherSystemsHaveIt(string $program, string $script): void
    {
        \touch("{$this->directory}/libclang.so");
        // Debian's place, which this machine may have.
        $none = 'compgen() { return 1; }; unset LIBCLANG_PATH; ldconfig() { :; }';
        self::assertSame('missing', $this->function('has_libclang', $none, 'has_libclang && echo found || echo missing'));

        $this->program($program, \strtr($script, ['DIRECTORY' => $this->directory]));

        $none = 'compgen() { return 1; }; unset LIBCLANG_PATH' . ($program === 'ldconfig' ? '' : '; ldconfig() { :; }');
        self::assertSame('found', $this->function('has_libclang', $none, 'has_libclang && echo found || echo missing'));
    }

    /** @return iterable<string, array{string, string}> */
    public static function places(): iterable
    {
        yield 'Fedora and Arch: the cache of the linker' => ['ldconfig', 'printf "\tlibclang.so.19.1 (libc6,x86-64) => /usr/lib64/libclang.so.19.1\n\tlibclang.so (libc6,x86-64) => /usr/lib64/libclang.so\n"'];
        yield 'llvm-config' => ['llvm-config', 'echo DIRECTORY'];
        yield 'clang' => ['clang', 'echo DIRECTORY/libclang.so'];
    }

    /** @dataProvider questions */
    #[DataProvider('questions')]
    public function testAQuestionAboutItsUseDoesNothingElse(string $argument, int $code): void
    {
        // The command line of `apt-cache`, too, asks the system something.
        $this->program('apt-cache', 'echo "$*" >>"$CALLS"');

        self::assertSame([], $this->callsOfAptGet([$argument], $code));
        self::assertStringStartsWith('usage: scripts/setup ', $this->printed());
    }

    /** @return iterable<string, array{string, int}> */
    public static function questions(): iterable
    {
        yield 'help' => ['--help', 0];
        yield 'a tier that does not exist' => ['frobnicate', 2];
    }

    /** Packages of Ubuntu 24.04 have the version of MySQL in their names. */
    public function testMysqlIsInstalledInsteadOfMariaDbWhereItIsAskedFor(): void
    {
        \file_put_contents("{$this->directory}/lists", 'new');

        $install = $this->callsOfAptGet(['services'], environment: ['WEFT_MYSQL' => 'mysql'])[1];
        self::assertStringContainsString(' mysql-client-core-8.4 ', $install);
        self::assertStringNotContainsString('mariadb', $install);
        self::assertStringNotContainsString('mysql', $this->callsOfAptGet(['services'], environment: ['WEFT_MYSQL' => 'mariadb'])[3]);
    }

    public function testAnotherDatabaseThanMysqlAndMariaDbIsRefused(): void
    {
        \file_put_contents("{$this->directory}/lists", 'new');

        self::assertSame([], $this->callsOfAptGet(['services'], environment: ['WEFT_MYSQL' => 'percona']));
        self::assertStringContainsString('WEFT_MYSQL is "percona", neither mariadb nor mysql', $this->printed());
    }

    /**
     * @param list<string> $arguments
     * @param array<string, string> $environment
     *
     * @return list<string> of all set-ups so far
     */
    private function callsOfAptGet(array $arguments = ['demo'], int $code = 1, array $environment = []): array
    {
        $process = \proc_open(
            ['bash', \dirname(__DIR__, 2) . '/scripts/setup', ...$arguments],
            [['file', '/dev/null', 'r'], ['file', "{$this->directory}/output", 'w'], ['redirect', 1]],
            $pipes,
            null,
            $environment + [
                'PATH' => "{$this->directory}/bin",
                'HOME' => $this->directory,
                'LISTS' => "{$this->directory}/lists",
                'CALLS' => "{$this->directory}/calls",
                'WEFT_OS_RELEASE' => "{$this->directory}/os-release",
            ],
        );
        self::assertIsResource($process);
        self::assertSame($code, \proc_close($process), $this->printed());

        return \is_file("{$this->directory}/calls") ? \file("{$this->directory}/calls", \FILE_IGNORE_NEW_LINES) ?: [] : [];
    }

    private function printed(): string
    {
        return (string) \file_get_contents("{$this->directory}/output");
    }

    /** What a function of the script writes, with others defined before it. */
    private function function(string $name, string $before, string $call = ''): string
    {
        \preg_match("/^{$name}\\(\\) \\{\n.*?^\\}\n/ms", (string) \file_get_contents(\dirname(__DIR__, 2) . '/scripts/setup'), $function);
        self::assertNotEmpty($function, "scripts/setup has no function {$name}");
        $call = $call === '' ? $name : $call;
        \exec(\sprintf('PATH=%s bash -c %s 2>&1', \escapeshellarg("{$this->directory}/bin"), \escapeshellarg("set -u\n{$before}\n{$function[0]}\n{$call}")), $output);

        return \implode("\n", $output);
    }

    private function system(string $id, string $like, string $version): void
    {
        \file_put_contents("{$this->directory}/os-release", "ID={$id}\nID_LIKE=\"{$like}\"\nVERSION_ID=\"{$version}\"\n");
    }

    /**
     * @param list<string> $calls
     *
     * @return list<string>
     */
    private static function subcommands(array $calls): array
    {
        return \array_map(static fn(string $call): string => \explode(' ', $call)[0], $calls);
    }

    private function program(string $name, string $script): void
    {
        \file_put_contents("{$this->directory}/bin/{$name}", "#!/bin/sh\n{$script}\n");
        \chmod("{$this->directory}/bin/{$name}", 0o755);
    }
}
