<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Sql\Schema\OldDatabase;
use Weft\Version;

use function Weft\run;

/** `weft setup`, a process of its own: what it says, prints and does to tables. */
final class SetupTest extends TestCase
{
    use OldDatabase;
    use TemporaryDatabase;

    private const BUS = __DIR__ . '/Fixtures/bus.php';

    protected function setUp(): void
    {
        \putenv("WEFT_TEST_FILE={$this->directory}/cli.db");
    }

    protected function tearDown(): void
    {
        \putenv('WEFT_TEST_FILE');
    }

    public function testCheckFailsUntilTheTablesFit(): void
    {
        $check = Weft::run(['setup', self::BUS, '--check']);
        self::assertSame(1, $check->exitCode, $check->errors);
        self::assertStringContainsString('bus in ' . $this->directory . "/cli.db: found no tables, version 2 is needed\n", $check->output);
        self::assertStringContainsString('sagas in ', $check->output);
        self::assertStringContainsString('transport in ', $check->output);

        $this->weft('setup', self::BUS);
        self::assertSame("no differences\n", $this->weft('setup', self::BUS, '--check'));
    }

    public function testDryRunAndSqlChangeNothing(): void
    {
        self::assertStringContainsString("create table weft_inbox\n", $this->weft('setup', self::BUS, '--dry-run'));
        self::assertStringContainsString("CREATE TABLE IF NOT EXISTS weft_inbox (\n", $this->weft('setup', self::BUS, '--sql'));

        self::assertStringContainsString("create table weft_inbox\n", $this->weft('setup', self::BUS, '--dry-run'));
    }

    public function testThePrintedSqlIsAllThatIsMissing(): void
    {
        $sql = $this->weft('setup', self::BUS, '--sql', '--component=locks');
        run(fn() => self::execute($this->database('sqlite'), $sql));
        $this->useTestDatabase();

        self::assertSame("no differences\n", $this->weft('setup', self::BUS, '--check', '--component=locks'));
        self::assertSame('', $this->weft('setup', self::BUS, '--sql'));
    }

    public function testTablesOf01AreUpgradedAndThenContracted(): void
    {
        run(fn() => $this->oldDatabase('sqlite'));
        $this->useTestDatabase();
        self::assertStringContainsString('rename table weft_attempts to weft_redeliveries', $this->weft('setup', self::BUS, '--dry-run'));
        self::assertSame(1, Weft::run(['setup', self::BUS, '--check'])->exitCode);

        self::assertStringContainsString('once none of them runs, run setup with --contract', $this->weft('setup', self::BUS));
        self::assertSame("no differences\n", $this->weft('setup', self::BUS, '--check'));
        self::assertStringContainsString('drop weft_attempts, the old name of weft_redeliveries', $this->weft('setup', self::BUS, '--contract'));

        self::assertSame('', $this->weft('setup', self::BUS, '--contract'));
        self::assertSame('', $this->weft('setup', self::BUS));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheScriptForANewDatabaseMakesAllTables(string $kind): void
    {
        $script = $this->weft('setup', '--sql', '--driver=' . self::driver($kind));

        run(function () use ($kind, $script): void {
            $database = $this->database($kind);
            self::execute($database, $script);
            self::assertSame([], self::differences($database));
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheScriptFrom01UpgradesItsTables(string $kind): void
    {
        $script = $this->weft('setup', '--sql', '--driver=' . self::driver($kind), '--from=0.1');
        $contract = $this->weft('setup', '--sql', '--driver=' . self::driver($kind), '--contract');

        run(function () use ($kind, $script, $contract): void {
            $database = $this->oldDatabase($kind);
            $before = self::rows($database, 0);
            self::execute($database, $script);
            self::assertSame([], self::differences($database));
            self::assertSame($before, self::rows($database, 1));
            self::execute($database, $contract);
            self::assertSame([], self::differences($database));
            self::assertSame($before, self::rows($database, 1));
        });
    }

    public function testMistakesAreNamed(): void
    {
        self::assertStringContainsString('--driver must be postgres, mysql or sqlite, got "oracle".', Weft::run(['setup', '--sql', '--driver=oracle'])->errors);
        self::assertStringContainsString('There is no component "lock" for sqlite.', Weft::run(['setup', '--sql', '--driver=sqlite', '--component=lock'])->errors);
        self::assertStringContainsString('Only one of --dry-run, --check and --sql can be given.', Weft::run(['setup', self::BUS, '--sql', '--check'])->errors);
        self::assertStringContainsString('A file is needed, except with --sql and --driver.', Weft::run(['setup', '--check'])->errors);
    }

    /**
     * @dataProvider optionsWithoutEffect
     *
     * @param list<string> $arguments
     */
    #[DataProvider('optionsWithoutEffect')]
    public function testWhatWouldHaveNoEffectIsRefused(array $arguments, string $complaint): void
    {
        \file_put_contents("{$this->directory}/database.php", '<?php return static fn() => Weft\Sql\Database::connect("sqlite::memory:");');

        $weft = Weft::run(['setup', ...\str_replace('database.php', "{$this->directory}/database.php", $arguments)]);

        self::assertSame([2, ''], [$weft->exitCode, $weft->output], $weft->errors);
        // The console breaks lines anywhere, and writes a backslash at the end of one as `\x00`.
        self::assertStringContainsString(\str_replace([' ', '\\'], '', $complaint), (string) \preg_replace('/\s+|\\\\(x00)?/', '', $weft->errors));
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function optionsWithoutEffect(): iterable
    {
        yield 'queues of a database' => [['database.php', 'orders'], 'database.php returns a Weft\Sql\Database, which has no queues: give a file that returns a Weft\Bus\Bus.'];
        yield 'queues and a check of tables' => [[self::BUS, 'orders', '--check'], '--check is about tables only: do not name queues.'];
        yield 'queues and SQL' => [[self::BUS, 'orders', '--sql'], '--sql is about tables only: do not name queues.'];
        yield 'queues and a contraction' => [[self::BUS, 'orders', '--contract'], '--contract is about tables only: do not name queues.'];
        yield 'a release and a database' => [['database.php', '--from=0.1'], '--from goes with --driver: a database is asked for the version of its tables.'];
        foreach (['', 'abc', '9.9', '0.1.2.3', '1'] as $release) {
            yield "no release: {$release}" => [['--sql', '--driver=sqlite', "--from={$release}"], '--from must be a version of Weft, such as 0.1, and at most ' . Version::LIBRARY . ", got \"{$release}\"."];
        }
        yield 'a check of a contraction' => [['database.php', '--contract', '--check'], '--contract and --check cannot be given together; --contract --dry-run says what it would remove.'];
    }

    private function useTestDatabase(): void
    {
        \putenv('WEFT_TEST_FILE=' . \substr($this->databaseDsn('sqlite'), \strlen('sqlite://')));
    }

    private static function driver(string $kind): string
    {
        return $kind === 'mariadb' ? 'mysql' : $kind;
    }

    private function weft(string ...$arguments): string
    {
        $weft = Weft::run(\array_values($arguments));
        self::assertSame([0, ''], [$weft->exitCode, $weft->errors], $weft->output);

        return $weft->output;
    }
}
