<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Timing;

/** What `scripts/test-matrix` makes of the output of a suite, in a folder where `scripts/chroot` only prints one. */
final class MatrixTest extends TestCase
{
    private const CHROOT = <<<'SH'
        #!/bin/sh
        case $* in
            --list) echo "$(. /etc/os-release; echo "$VERSION_CODENAME") own 8.4 mysql This one"; echo 'broken broken 8.4 mysql Other 3'; echo 'left left 8.3 mariadb Other 1'; echo 'right right 8.4 mysql Debian 13 (testing)'; echo 'long long 8.5 mysql Other 2' ;;
            *dpkg-query*) echo 'ii  php-guzzlehttp-guzzle 7.9.2-1'; echo 'ii  postgresql-17 17.6-0+deb13u1'; echo 'ii  mysql-server-core-8.4 8.4.10-0ubuntu1'; echo 'ii  redis-server 5:8.0.2-3'; echo 'rc  phpunit 9.6.7-1' ;;
            *PHP_VERSION*) echo 8.4.16 ;;
            left*) echo 'make: *** [Makefile:92: test] Error 2' ;;
            right*) cat output; exit 1 ;;
            broken*) echo '40 passed, 0 failed, 3 skipped'; exit 1 ;;
            long*) trap 'touch ended; exit 143' TERM; touch begun; for _ in $(seq 600); do sleep 0.05; done ;;
        esac
        SH;
    private const OUTPUT = <<<'TEXT'
        3 passed, 0 failed, 1 skipped
        skipped 1: curl is missing
            Weft\Tests\Http\TlsTest::testOne with data set "skipped 4: old curl"
        skipped 2: needs Symfony 7: 6.4 is installed
            Weft\Tests\Http\TlsTest::testTwo
            Weft\Tests\Http\TlsTest::testThree

        failed: Weft\Tests\Sql\ListenTest::testIt
        40 passed, 2 failed, 3 skipped
        TEXT;

    private string $folder;
    private string $printed = '';

    protected function setUp(): void
    {
        $root = \dirname(__DIR__, 2);
        $this->folder = \sys_get_temp_dir() . '/weft-matrix-' . \bin2hex(\random_bytes(6));
        \mkdir("{$this->folder}/scripts", recursive: true);
        \mkdir("{$this->folder}/docs/guides", recursive: true);
        \copy("$root/scripts/test-matrix", "{$this->folder}/scripts/test-matrix");
        \copy("$root/docs/guides/install.md", "{$this->folder}/docs/guides/install.md");
        \file_put_contents("{$this->folder}/scripts/chroot", self::CHROOT);
        \chmod("{$this->folder}/scripts/chroot", 0o755);
        \mkdir("{$this->folder}/.ci");
        \file_put_contents("{$this->folder}/.ci/run", "#!/bin/sh\necho \"skipped 3: \$WEFT_MYSQL of \$WEFT_PHP\"; echo '4 passed, 0 failed, 3 skipped'\n");
        \chmod("{$this->folder}/.ci/run", 0o755);
        \file_put_contents("{$this->folder}/output", self::OUTPUT . "\n");
        // As in the project itself, a log is no change.
        \file_put_contents("{$this->folder}/.gitignore", "/var\n");
        $this->git('init --quiet');
        $this->git('add .');
        $this->git('-c user.name=Weft -c user.email=weft@localhost commit --quiet --message=All');
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->folder));
    }

    public function testARowHasVersionsCountsAndTheReasonsOfSkippedTests(): void
    {
        self::assertSame(1, $this->matrix('right'));

        $row = \json_decode((string) \file_get_contents("{$this->folder}/docs/matrix.json"), true, flags: \JSON_THROW_ON_ERROR)['rows'][0];
        self::assertSame(
            ['8.4.16', '17.6', null, '8.4.10', null, '8.0.2', null, '7.9.2'],
            \array_map(static fn(string $name): ?string => $row['versions'][$name], ['PHP', 'PostgreSQL', 'MariaDB', 'MySQL', 'PgBouncer', 'Redis', 'PHPUnit', 'Guzzle']),
        );
        self::assertSame([40, 2], [$row['passed'], $row['failed']]);
        self::assertSame(['curl is missing' => 1, 'needs Symfony 7: 6.4 is installed' => 2], $row['skipped']);
        self::assertMatchesRegularExpression('{^\| Debian 13 \(testing\) \| 8\.4\.16 \| 17\.6 \|.*\| ' . $this->git('rev-parse --short HEAD') . ' \| 40 \| 2 \| 3 \|$}m', (string) \file_get_contents("{$this->folder}/docs/guides/install.md"));
    }

    public function testASystemWhoseTestsDidNotRunToTheirEndGetsNoRow(): void
    {
        self::assertSame(1, $this->matrix('left'));

        self::assertFileDoesNotExist("{$this->folder}/docs/matrix.json");
    }

    public function testASuiteThatFailedWithoutAFailedTestGetsNoRow(): void
    {
        self::assertSame(1, $this->matrix('broken'));

        self::assertStringContainsString('broken printed "40 passed, 0 failed, 3 skipped" and ended with 1', $this->printed);
        self::assertFileDoesNotExist("{$this->folder}/docs/matrix.json");
    }

    /** Here, and so with the version of PHP and the server that the row is about. */
    public function testTheSuiteOfThisSystemRunsOnWhatIsCommitted(): void
    {
        $own = (string) \parse_ini_file('/etc/os-release')['VERSION_CODENAME'];
        \touch("{$this->folder}/more");

        self::assertSame(2, $this->matrix($own));
        self::assertStringContainsString("the suite of $own runs on this checkout, which differs from its commit", $this->printed);

        \unlink("{$this->folder}/more");
        $this->matrix($own);
        // The programs of this system are another version's than the row says.
        self::assertStringContainsString("skipped 3: mysql of 8.4\n4 passed", (string) \file_get_contents("{$this->folder}/var/matrix-$own.log"));
    }

    public function testEndingItEndsTheSuite(): void
    {
        $process = \proc_open([\PHP_BINARY, '-n', 'scripts/test-matrix', 'long'], [1 => ['file', '/dev/null', 'w']], $pipes, $this->folder, ['WEFT_VAR' => "{$this->folder}/var"] + \getenv());
        Timing::until(fn(): bool => \is_file("{$this->folder}/begun"), 'the suite to begin');

        \proc_terminate($process);
        Timing::until(static fn(): bool => !\proc_get_status($process)['running'], 'its end');
        \proc_close($process);

        self::assertFileExists("{$this->folder}/ended");
        self::assertFileDoesNotExist("{$this->folder}/docs/matrix.json");
    }

    public function testThePageShowsTheRowsThatAreCommitted(): void
    {
        $root = \dirname(__DIR__, 2);
        if (!\is_file("$root/docs/matrix.json")) {
            self::markTestSkipped('no system has finished yet');
        }
        \copy("$root/docs/matrix.json", "{$this->folder}/docs/matrix.json");

        self::assertSame(0, $this->matrix('--render'));

        self::assertFileEquals("$root/docs/guides/install.md", "{$this->folder}/docs/guides/install.md");
    }

    private function git(string $arguments): string
    {
        return \trim((string) \shell_exec('git -C ' . \escapeshellarg($this->folder) . " $arguments"));
    }

    private function matrix(string $argument): int
    {
        $output = [];
        \exec('cd ' . \escapeshellarg($this->folder) . ' && env --unset=WEFT_VAR ' . \escapeshellarg(\PHP_BINARY) . ' -n scripts/test-matrix ' . \escapeshellarg($argument) . ' 2>&1', $output, $code);
        $this->printed = \implode("\n", $output);

        return $code;
    }
}
