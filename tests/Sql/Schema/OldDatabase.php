<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Schema;

use Weft\Cli\Internal\Components;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Catalog;
use Weft\Sql\Internal\Schema\Component;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Tests\Sql\Support\Databases;

/** Databases with the tables and rows of Weft 0.1, and what became of them. */
trait OldDatabase
{
    use Databases;

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

    /** Old tables of the bus that the upgrade changes. */
    private const OF_THE_BUS = ['weft_attempts', 'weft_keys', 'weft_waiting', 'weft_inbox'];

    /** @param list<string> $only old names of tables; none for all */
    private function oldDatabase(string $kind, array $only = []): Database
    {
        $database = $this->database($kind);
        foreach (self::statements((string) \file_get_contents(__DIR__ . "/Fixtures/0.1/{$kind}.sql")) as $statement) {
            if ($only === [] || \preg_match('/\b(' . \implode('|', $only) . ')\b/', \strtok($statement, "(")) === 1) {
                $database->execute($statement);
            }
        }

        return $database;
    }

    /** @param string $script statements that end with a semicolon and a line feed */
    private static function execute(Database $database, string $script): void
    {
        \array_map($database->execute(...), self::statements($script));
    }

    /** @return list<string> */
    private static function statements(string $script): array
    {
        return \array_values(\array_filter(\explode(";\n", $script), static fn(string $statement): bool => \trim($statement) !== ''));
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
            static fn(Component $component): array => (new Migrator($database))->differences($component),
            \array_values(Components::of($database->driver())),
        ));
    }

    /**
     * @param int<0, 1>    $names 0: of Weft 0.1; 1: of today
     * @param list<string> $only  old names of tables; none for all
     * @return array<string, list<array<string, mixed>>> sorted, by today's table, with today's columns
     */
    private static function rows(Database $database, int $names, array $only = []): array
    {
        $rows = [];
        foreach ([...self::RENAMED, ...\array_map(static fn(string $table): array => [$table, $table, []], self::UNCHANGED)] as $renamed) {
            [$old, $table, $columns] = $renamed;
            if ($only !== [] && !\in_array($old, $only, true)) {
                continue;
            }
            $rows[$table] = [];
            foreach ($database->execute("SELECT * FROM {$renamed[$names]}")->rows() as $row) {
                $new = [];
                foreach ($row as $column => $value) {
                    $new[$columns[$column] ?? $column] ??= $value;
                }
                unset($new['ctid'], $new['cause']);
                if ($table === 'weft_schedules') {
                    unset($new['type'], $new['fired']);
                }
                \ksort($new);
                $rows[$table][] = $new;
            }
            \sort($rows[$table]);
        }

        return $rows;
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
}
