<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Schema;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Cli\Internal\Components;
use Weft\Lock\SqlStore;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\SchemaException;
use Weft\Tests\InTask;

use function Weft\all;

/** Who creates tables, and what is said when they do not fit. */
final class MigratorTest extends TestCase
{
    use InTask;
    use OldDatabase;

    private const PROCESSES = 4;

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testProcessesThatStartTogetherCreateTheTablesOnce(string $kind): void
    {
        $database = $this->database($kind);
        $command = [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), __DIR__ . '/Fixtures/upgrade.php', $this->databaseDsn($kind)];
        $processes = \array_map(static fn() => \proc_open($command, [], $pipes), \range(1, self::PROCESSES));

        self::assertSame(\array_fill(0, self::PROCESSES, 0), \array_map(static fn($process): int => \proc_close($process), $processes));
        self::assertSame([], self::differences($database));
        self::assertSame(\count(Components::of($database->driver())), $database->execute('SELECT count(*) FROM weft_schema')->value());
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAPoolOfOneConnectionIsEnough(string $kind): void
    {
        $database = $this->database($kind, size: 1);

        self::upgrade($database);

        self::assertSame([], self::differences($database));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testWithoutPermissionToCreateTablesTheErrorSaysWhatIsMissingAndWhichCommandHelps(string $kind): void
    {
        $database = $this->opened[] = Database::connect($this->databaseDsn($kind), new PoolOptions(), createTables: false);
        try {
            (new SqlStore($database))->acquire('lock', 'owner', 1.0);
            self::fail('The table does not exist');
        } catch (SchemaException $exception) {
            self::assertStringContainsString('The tables of "locks" in database "', $exception->getMessage());
            self::assertStringContainsString('found no version, version 1 is needed; weft_locks is missing. Run `weft setup` or apply the SQL that `weft setup --sql` prints', $exception->getMessage());
        }

        (new SqlStore($this->database($kind)))->acquire('lock', 'owner', 60.0);
        self::assertNull((new SqlStore($database))->acquire('lock', 'other', 1.0), 'others may have created them');
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testWithoutPermissionToCreateTablesAnOldVersionIsAnError(string $kind): void
    {
        $this->oldDatabase($kind);
        $database = $this->opened[] = Database::connect($this->databaseDsn($kind), createTables: false);
        self::assertSame(1, (new SqlStore($database))->acquire('lock', 'owner', 1.0), 'the tables of locks have not changed');

        $this->expectException(SchemaException::class);
        $this->expectExceptionMessage('found version 1, version 2 is needed; weft_redeliveries, weft_blocked_keys, weft_blocked_messages, weft_rate_limits, weft_paused_queues, weft_broker is missing');
        (new Migrator($database))->ensure(self::bus($database));
    }

    public function testAUserOfPostgresWhoMayNotCreateTablesIsToldWhichCommandHelps(): void
    {
        $admin = $this->database('postgres');
        $role = 'weft_test_' . \bin2hex(\random_bytes(4));
        $admin->execute("CREATE ROLE {$role} LOGIN PASSWORD 'secret'");
        $database = Database::connect((string) \preg_replace('~//[^@]*@~', "//{$role}:secret@", $this->databaseDsn('postgres')));
        try {
            $admin->execute('GRANT USAGE ON SCHEMA ' . $admin->execute('SELECT current_schema()')->value() . " TO {$role}");
            (new Migrator($database))->ensure(self::bus($database));
            self::fail('The user may not create tables');
        } catch (SchemaException $exception) {
            self::assertMatchesRegularExpression('/The tables of "bus" cannot be created or upgraded to version 2 in database .*permission denied for schema.* Run `weft setup` as a user who may create tables/s', $exception->getMessage());
        } finally {
            $database->close();
            $admin->execute("DROP OWNED BY {$role}");
            $admin->execute("DROP ROLE {$role}");
        }
    }

    public function testAUserOfMariaDbWhoMayNotCreateTablesIsToldWhichCommandHelps(): void
    {
        $admin = $this->database('mariadb');
        $user = 'weft_test_' . \bin2hex(\random_bytes(4));
        $admin->execute("CREATE USER {$user}@'%' IDENTIFIED BY 'secret'");
        $database = Database::connect((string) \preg_replace('~//[^@]*@~', "//{$user}:secret@", $this->databaseDsn('mariadb')) . '?allow_unverified_server=on');
        try {
            $admin->execute('GRANT SELECT, INSERT, UPDATE, DELETE ON ' . $admin->execute('SELECT DATABASE()')->value() . ".* TO {$user}@'%'");
            (new Migrator($database))->ensure(self::bus($database));
            self::fail('The user may not create tables');
        } catch (SchemaException $exception) {
            self::assertMatchesRegularExpression('/The tables of "bus" cannot be created or upgraded to version 2 in database .*CREATE command denied.* Run `weft setup` as a user who may create tables/s', $exception->getMessage());
        } finally {
            $database->close();
            $admin->execute("DROP USER {$user}@'%'");
        }
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTablesThatOnlyANewerWeftCanUseAreRefused(string $kind): void
    {
        $database = $this->database($kind);
        self::upgrade($database);
        $database->execute("UPDATE weft_schema SET version = 4, minimum = 3 WHERE component = 'bus'");

        $this->expectException(SchemaException::class);
        $this->expectExceptionMessage('have version 4, which workers from version 3 on can use. This worker knows version 2: update Weft');
        (new Migrator($database))->ensure(self::bus($database));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTablesOfTheNextVersionAreUsedAsLongAsItKeepsThisOne(string $kind): void
    {
        $database = $this->database($kind);
        self::upgrade($database);
        $database->execute("UPDATE weft_schema SET version = 3, minimum = 2 WHERE component = 'bus'");

        (new Migrator($database))->ensure(self::bus($database));
        (new Migrator($database))->upgrade(self::bus($database));

        self::assertSame([3, 2], \array_values($database->execute("SELECT version, minimum FROM weft_schema WHERE component = 'bus'")->first() ?? []));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testDifferencesAreNamed(string $kind): void
    {
        $database = $this->database($kind);
        self::upgrade($database);
        $database->execute('DROP TABLE weft_snapshots');
        $database->execute('ALTER TABLE weft_locks DROP COLUMN fence');
        $database->execute('DROP INDEX weft_delayed_due' . ($kind === 'mariadb' ? ' ON weft_delayed' : ''));
        $database->execute('ALTER TABLE weft_schedules RENAME COLUMN due TO due_old');
        $database->execute('ALTER TABLE weft_schedules ADD COLUMN due VARCHAR(20)');
        $type = $kind === 'postgres' ? 'character varying(20)' : 'varchar(20)';

        self::assertSame([
            'index of weft_delayed (due) is missing',
            "column weft_schedules.due has the type {$type}, bigint is expected",
            'column weft_locks.fence is missing, bigint is expected',
            'table weft_snapshots is missing',
        ], self::differences($database));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testManyTasksOfOneProcessMayStartTogether(string $kind): void
    {
        $database = $this->database($kind);

        all(\array_fill(0, 5, static fn() => self::upgrade($database)));

        self::assertSame([], self::differences($database));
    }

    private static function bus(Database $database): Component
    {
        return Components::of($database->driver())['bus'];
    }
}
