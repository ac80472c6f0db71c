<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Schema;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Cli\Internal\Components;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Tests\InTask;

use function Weft\all;
use function Weft\async;
use function Weft\delay;

/** Tables as Weft 0.1 made them become those of today while workers of both use them. */
final class UpgradeTest extends TestCase
{
    use InTask;
    use OldDatabase;

    /** Rounds of each worker before, while and after the tables are upgraded. */
    private const ROUNDS = 6;

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTablesOf01KeepTheirRowsAndBecomeThoseOfANewDatabase(string $kind): void
    {
        $database = $this->oldDatabase($kind);
        $before = self::rows($database, 0);

        self::upgrade($database);
        self::assertSame($before, self::rows($database, 1));
        self::assertSame([], self::differences($database));
        self::contract($database);

        self::assertSame($before, self::rows($database, 1));
        self::assertSame([], self::differences($database));
        $tables = self::tables($database);
        self::assertSame($this->tablesOfANewDatabase($kind), $tables);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTwoUpgradesAreOne(string $kind): void
    {
        $database = $this->oldDatabase($kind);
        self::upgrade($database);
        self::contract($database);
        $before = self::rows($database, 1);

        self::upgrade($database);
        self::contract($database);

        self::assertSame($before, self::rows($database, 1));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testWorkersOf01LoseNothingWhileSeveralProcessesUpgrade(string $kind): void
    {
        $database = $this->oldDatabase($kind);
        $database->execute('CREATE TABLE effects (id VARCHAR(64))');
        $workers = [new Worker01($this->database($kind), 'a'), new Worker01($this->database($kind), 'b'), new Worker01($this->database($kind), 'c')];
        $running = \array_map(static fn(Worker01 $worker) => async($worker->run(...)), $workers);

        self::rounds($workers);
        all(\array_map(fn(): \Closure => fn() => self::upgrade($this->database($kind)), \range(1, 3)));
        self::rounds($workers);
        foreach ($workers as $worker) {
            $worker->isStopping = true;
        }
        \array_walk($running, static fn($task) => $task->await());
        self::contract($database);

        self::assertNothingLost($database, $workers);
        self::assertSame([], self::differences($database));
        foreach (\array_merge(...\array_column($workers, 'missing')) as $missing) {
            self::assertSame('mariadb', $kind);
            self::assertMatchesRegularExpression("/^Table '\w+\.(weft_redeliveries|weft_blocked_keys|weft_blocked_messages)' doesn't exist \(error 1146\)/", $missing, 'of tables that triggers write to');
        }
    }

    /**
     * What a killed process leaves: PostgreSQL and SQLite undo the step, MariaDB has done some statements of it.
     *
     * @dataProvider databases
     */
    #[DataProvider('databases')]
    public function testAnUpgradeThatIsKilledGoesOn(string $kind): void
    {
        $database = $this->oldDatabase($kind);
        $before = self::rows($database, 0);
        $command = [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), __DIR__ . '/Fixtures/upgrade.php', $this->databaseDsn($kind)];
        for ($kills = 0, $seconds = 0.05;; $kills++, $seconds *= 1.15) {
            $process = \proc_open($command, [], $pipes);
            self::assertIsResource($process);
            $until = \microtime(true) + $seconds;
            do {
                delay(0.002);
                $status = \proc_get_status($process);
            } while ($status['running'] && \microtime(true) < $until);
            if (!$status['running']) {
                self::assertSame(0, $status['exitcode']);
                break;
            }
            \posix_kill($status['pid'], \SIGKILL);
            while (\proc_get_status($process)['running']) {
                delay(0.002);
            }
        }
        self::assertGreaterThan(0, $kills);

        self::assertSame([], self::differences($database));
        self::assertSame($before, self::rows($database, 1));
    }

    /** MariaDB commits each statement: whichever was the last, the next process goes on behind it. */
    public function testAnUpgradeGoesOnBehindEachStatementInMariaDb(): void
    {
        $statements = [];
        $tables = null;
        for ($done = 0; $done === 0 || $done < \count($statements); $done++) {
            $database = $this->oldDatabase('mariadb', self::OF_THE_BUS);
            $before = self::rows($database, 0, self::OF_THE_BUS);
            $bus = Components::of(Driver::Mysql)['bus'];
            $statements = (new Migrator($database))->sql($bus);
            // The version is recorded before the first step.
            $database->execute('CREATE TABLE weft_schema (component VARBINARY(50) NOT NULL PRIMARY KEY, version INT NOT NULL, minimum INT NOT NULL)');
            $database->execute("INSERT INTO weft_schema VALUES ('bus', 1, 1)");
            foreach (\array_slice($statements, 0, $done) as $statement) {
                $database->execute($statement);
            }

            (new Migrator($database))->ensure($bus);

            self::assertSame([], (new Migrator($database))->differences($bus), "after {$done} statements");
            self::assertSame($before, self::rows($database, 1, self::OF_THE_BUS), "after {$done} statements");
            self::assertSame($tables ??= self::tables($database), self::tables($database), "after {$done} statements");
            $this->dropDatabases();
        }
        self::assertGreaterThan(20, $done);
    }

    /** An operator upgrades as the owner of the tables; workers of 0.1 have other users. */
    public function testOtherUsersOfPostgresKeepTheirPrivileges(): void
    {
        $database = $this->oldDatabase('postgres');
        $role = 'weft_test_' . \bin2hex(\random_bytes(4));
        $schema = $database->execute('SELECT current_schema()')->value();
        $database->execute("CREATE ROLE {$role}");
        try {
            $database->execute("GRANT USAGE ON SCHEMA {$schema} TO {$role}");
            $database->execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {$schema} TO {$role}");
            self::upgrade($database);

            $as = static fn(string $sql) => $database->transaction(static function (Transaction $transaction) use ($role, $sql): int {
                $transaction->execute("SET LOCAL ROLE {$role}");

                return $transaction->execute($sql)->affected();
            });
            self::assertSame(1, $as("INSERT INTO weft_inbox (message_id, consumer, body, handled_at) VALUES ('old', 1, 2, 3)"));
            self::assertSame(1, $as("UPDATE weft_redeliveries SET redeliveries = 3"));
            self::assertSame(1, $as("DELETE FROM weft_attempts WHERE attempts = 3"));
        } finally {
            $database->execute("DROP OWNED BY {$role}");
            $database->execute("DROP ROLE {$role}");
        }
    }

    /** @param list<Worker01> $workers */
    private static function assertNothingLost(Database $database, array $workers): void
    {
        $all = static fn(string $list): array => self::sorted(\array_merge(...\array_column($workers, $list)));
        $found = static fn(string $sql): array => self::sorted($database->execute($sql)->column());
        $own = "LIKE '_-%'";

        self::assertSame($all('handled'), $found("SELECT message_id FROM weft_inbox WHERE message_id {$own}"));
        self::assertSame($all('handled'), $found("SELECT id FROM effects"));
        foreach ($database->execute("SELECT message_id, body_hash FROM weft_inbox WHERE message_id {$own}")->rows() as $row) {
            self::assertSame(Worker01::fingerprint($row['message_id']), $row['body_hash']);
        }
        self::assertSame($all('kept'), $found("SELECT message_id FROM weft_redeliveries WHERE message_id {$own} AND redeliveries = 2"));
        self::assertSame($all('kept'), $found("SELECT value FROM weft_saga_associations WHERE value {$own} AND id = value"));
        self::assertSame($all('kept'), $found("SELECT id FROM weft_claim_checks WHERE id {$own}"));
        self::assertSame($all('blocked'), $found("SELECT order_key FROM weft_blocked_keys WHERE order_key {$own} AND released = 0"));
        self::assertSame($all('blocked'), $found("SELECT order_key FROM weft_blocked_messages WHERE order_key {$own}"));
        self::assertNotSame([], $all('kept'));
    }

    /** @param list<Worker01> $workers */
    private static function rounds(array $workers): void
    {
        foreach ($workers as $worker) {
            for ($until = $worker->rounds + self::ROUNDS; $worker->rounds < $until;) {
                delay(0.005);
            }
        }
    }

    /** @return list<string> */
    private function tablesOfANewDatabase(string $kind): array
    {
        $this->dropDatabases();
        $database = $this->database($kind);
        self::upgrade($database);

        return self::tables($database);
    }

    /**
     * @param list<string> $values
     * @return list<string>
     */
    private static function sorted(array $values): array
    {
        \sort($values);

        return $values;
    }
}
