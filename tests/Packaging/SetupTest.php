<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;

/** How `scripts/setup` calls apt. Scripts take its place on the PATH, so nothing is installed. */
final class SetupTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $system = @\parse_ini_file('/etc/os-release');
        if (!\in_array($system['ID'] ?? '', ['debian', 'ubuntu'], true)) {
            self::markTestSkipped('scripts/setup installs on Debian and Ubuntu only');
        }
        $this->directory = \sys_get_temp_dir() . '/weft-setup-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->directory}/bin", recursive: true);
        // The programs that it needs, and no others: everything that it could install is missing.
        foreach (['bash', 'cat', 'cut', 'dirname', 'env', 'grep', 'head', 'sed', 'sort', 'tail', 'touch'] as $program) {
            \symlink(\trim((string) \shell_exec("command -v {$program}")), "{$this->directory}/bin/{$program}");
        }
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

    /** Packages of Ubuntu 24.04 have the version of MySQL in their names. */
    public function testMysqlIsInstalledInsteadOfMariaDbWhereItIsAskedFor(): void
    {
        \file_put_contents("{$this->directory}/lists", 'new');

        $install = $this->callsOfAptGet(['WEFT_MYSQL' => 'mysql'], 'services')[1];
        self::assertStringContainsString(' mysql-client-core-8.4 ', $install);
        self::assertStringNotContainsString('mariadb', $install);
        self::assertStringNotContainsString('mysql', $this->callsOfAptGet(['WEFT_MYSQL' => 'mariadb'], 'services')[3]);
    }

    public function testAnotherDatabaseThanMysqlAndMariaDbIsRefused(): void
    {
        \file_put_contents("{$this->directory}/lists", 'new');

        self::assertSame([], $this->callsOfAptGet(['WEFT_MYSQL' => 'percona'], 'services'));
        self::assertStringContainsString('WEFT_MYSQL is "percona", neither mariadb nor mysql', (string) \file_get_contents("{$this->directory}/output"));
    }

    /**
     * @param array<string, string> $environment
     *
     * @return list<string> of all set-ups so far
     */
    private function callsOfAptGet(array $environment = [], string $tier = 'demo'): array
    {
        $process = \proc_open(
            ['bash', \dirname(__DIR__, 2) . '/scripts/setup', $tier],
            [['file', '/dev/null', 'r'], ['file', "{$this->directory}/output", 'w'], ['redirect', 1]],
            $pipes,
            null,
            $environment + ['PATH' => "{$this->directory}/bin", 'HOME' => $this->directory, 'LISTS' => "{$this->directory}/lists", 'CALLS' => "{$this->directory}/calls"],
        );
        self::assertIsResource($process);
        self::assertSame(1, \proc_close($process), (string) \file_get_contents("{$this->directory}/output"));

        return \is_file("{$this->directory}/calls") ? \file("{$this->directory}/calls", \FILE_IGNORE_NEW_LINES) ?: [] : [];
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
