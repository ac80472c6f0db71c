<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Schema;

use PHPUnit\Framework\TestCase;
use Weft\Cli\Internal\Components;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Catalog;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Tests\InTask;
use Weft\Tests\Sql\Support\Databases;

use function Weft\all;
use function Weft\async;
use function Weft\delay;

/** Tables as Weft 0.1 made them become those of today while workers of both use them. */
final class UpgradeTest extends TestCase
{
    use Databases;
    use InTask;

    /** Old name, new name and the columns that were renamed. */
    private const RENAMED = [
        ['weft_attempts', 'weft_redeliveries', ['attempts' => 'redeliveries', 'noted_at' => 'updated_at']],
        ['weft_keys', 'weft_blocked_keys', ['head' => 'message_id']],
        ['weft_waiting', 'weft_blocked_messages', ['place' => 'position']],
        ['weft_saga_values', 'weft_saga_associations', []],
        ['weft_bodies', 'weft_claim_checks', []],
        ['weft_inbox', 'weft_inbox', ['body' => 'body_hash']],
    ];

    private const UNCHANGED = ['weft_outbox', 'weft_delayed', 'weft_schedules', 'weft_sagas', 'weft_locks', 'weft_events', 'weft_projections'];

    /** Rounds of each worker before, while and after the tables are upgraded. */
    private const ROUNDS = 6;

    /** @dataProvider databases */
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

    private function oldDatabase(string $kind): Database
    {
        $database = $this->database($kind);
        foreach (\explode(";\n", \file_get_contents(__DIR__ . "/Fixtures/0.1/{$kind}.sql")) as $statement) {
            \trim($statement) === '' || $database->execute($statement);
        }

        return $database;
    }

    private static function upgrade(Database $database): void
    {
        foreach (Components::of($database->driver()) as $component) {
            (new Migrator($database))->ensure($component);
        }
    }

    private static function contract(Database $database): void
    {
        foreach (Components::of($database->driver()) as $component) {
            (new Migrator($database))->contract($component);
        }
    }

    /** @return list<string> */
    private static function differences(Database $database): array
    {
        return \array_merge(...\array_map(
            static fn($component): array => (new Migrator($database))->differences($component),
            \array_values(Components::of($database->driver())),
        ));
    }

    /**
     * @param int<0, 1> $names 0: of Weft 0.1; 1: of today
     * @return array<string, list<array<string, mixed>>> sorted, by today's table, with today's columns
     */
    private static function rows(Database $database, int $names): array
    {
        $rows = [];
        foreach ([...self::RENAMED, ...\array_map(static fn(string $table): array => [$table, $table, []], self::UNCHANGED)] as $renamed) {
            [, $table, $columns] = $renamed;
            $rows[$table] = [];
            foreach ($database->execute("SELECT * FROM {$renamed[$names]}")->rows() as $row) {
                $new = [];
                foreach ($row as $column => $value) {
                    $new[$columns[$column] ?? $column] ??= $value;
                }
                unset($new['ctid']);
                \ksort($new);
                $rows[$table][] = $new;
            }
            \sort($rows[$table]);
        }

        return $rows;
    }

    /** @return list<string> */
    private function tablesOfANewDatabase(string $kind): array
    {
        $this->dropDatabases();
        $database = $this->database($kind);
        self::upgrade($database);

        return self::tables($database);
    }

    /** @return list<string> each table with its columns, and each view */
    private static function tables(Database $database): array
    {
        $catalog = new Catalog($database, $database->driver());
        $tables = [];
        foreach ($catalog->names() as $name) {
            $columns = \array_keys($catalog->columns($name));
            \sort($columns);
            $tables[] = ($catalog->isView($name) ? 'view ' : '') . "{$name}: " . \implode(', ', $columns);
        }
        \sort($tables);

        return $tables;
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
