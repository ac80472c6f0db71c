<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Sql\Database;

/**
 * Differences between the SQL of the databases.
 *
 * @internal
 */
final class Dialect
{
    private const POSTGRES = 'postgres';
    private const SQLITE = 'sqlite';

    private readonly string $driver;

    public function __construct(Database $database)
    {
        $this->driver = $database->driver()->value;
    }

    /** Whether rows can be locked, so that several processes work on different ones. */
    public function locksRows(): bool
    {
        return $this->driver !== self::SQLITE;
    }

    /** Whether there is a server, whose clock all processes share. */
    public function hasServer(): bool
    {
        return $this->driver !== self::SQLITE;
    }

    /** The end of a SELECT that locks its rows; an SQLite transaction locks the whole database. */
    public function forUpdate(): string
    {
        return $this->locksRows() ? ' FOR UPDATE' : '';
    }

    public function skipLocked(): string
    {
        return $this->locksRows() ? ' FOR UPDATE SKIP LOCKED' : '';
    }

    /**
     * An INSERT that takes the place of the row with the same key. In one statement, because of two transactions that first delete
     * a row which is not there MariaDB lets only one insert it: both have locked the gap.
     *
     * @param non-empty-list<string> $columns of which the first is the primary key
     */
    public function replace(string $table, array $columns): string
    {
        $insert = "INTO {$table} (" . \implode(', ', $columns) . ') VALUES (' . \implode(', ', \array_fill(0, \count($columns), '?')) . ')';
        if ($this->driver !== self::POSTGRES) {
            return "REPLACE {$insert}";
        }
        $others = \array_map(static fn(string $column): string => "{$column} = excluded.{$column}", \array_slice($columns, 1));

        return "INSERT {$insert} ON CONFLICT ({$columns[0]}) DO UPDATE SET " . \implode(', ', $others);
    }

    /**
     * `$column` is one of the values. The statement's text does not depend on how many there are, or hardly, so that it stays
     * prepared.
     *
     * @param non-empty-list<string> $values
     * @return array{string, list<mixed>} condition and parameters
     */
    public function among(string $column, array $values): array
    {
        return match ($this->driver) {
            self::POSTGRES => ["{$column} = ANY(?)", [$values]],
            self::SQLITE => ["{$column} IN (SELECT value FROM json_each(?))", [\json_encode($values, \JSON_THROW_ON_ERROR)]],
            default => self::padded($column, $values),
        };
    }

    /** A statement that lets a commit not wait for the disk; null where there is none. */
    public function commitsLazily(): ?string
    {
        return $this->driver === self::POSTGRES ? 'SET LOCAL synchronous_commit = off' : null;
    }

    /** Deletes up to `$limit` rows whose `$column` is less than the parameter. */
    public function deleteBelow(string $table, string $key, string $column, int $limit): string
    {
        return match ($this->driver) {
            self::POSTGRES => "DELETE FROM {$table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {$table} WHERE {$column} < ? LIMIT {$limit}))",
            self::SQLITE => "DELETE FROM {$table} WHERE ({$key}) IN (SELECT {$key} FROM {$table} WHERE {$column} < ? ORDER BY {$column} LIMIT {$limit})",
            default => "DELETE FROM {$table} WHERE {$column} < ? ORDER BY {$column} LIMIT {$limit}",
        };
    }

    /**
     * @return list<string> what has to run once, in a transaction
     */
    public function schema(): array
    {
        $bytes = $this->bytes();
        // Compared bytewise: a collation would cost as much as the rest of the insert.
        $id = 'VARCHAR(64)' . ($this->driver === self::POSTGRES ? ' COLLATE "C"' : '');
        $tables = [
            "weft_inbox (
                message_id {$id} NOT NULL, consumer BIGINT NOT NULL, body_hash BIGINT NOT NULL, handled_at BIGINT NOT NULL,
                PRIMARY KEY (message_id, consumer)",
            "weft_outbox (
                id {$id} NOT NULL PRIMARY KEY, type VARCHAR(200) NOT NULL, must_route SMALLINT NOT NULL, headers TEXT NOT NULL, body {$bytes} NOT NULL",
            'weft_redeliveries (
                message_id VARCHAR(64) NOT NULL, consumer BIGINT NOT NULL, redeliveries INT NOT NULL, updated_at BIGINT NOT NULL,
                PRIMARY KEY (message_id, consumer)',
        ];
        $tables[] = "weft_delayed (
                id VARCHAR(96) NOT NULL PRIMARY KEY, due BIGINT NOT NULL, queue VARCHAR(250) NOT NULL, type VARCHAR(200) NOT NULL,
                must_route SMALLINT NOT NULL, headers TEXT NOT NULL, body {$bytes} NOT NULL";
        $tables[] = 'weft_schedules (
                name VARCHAR(200) NOT NULL PRIMARY KEY, rule VARCHAR(200) NOT NULL, due BIGINT NOT NULL';
        $tables[] = 'weft_blocked_keys (
                queue VARCHAR(250) NOT NULL, order_key VARCHAR(200) NOT NULL, message_id VARCHAR(64) NOT NULL, blocked_at BIGINT NOT NULL,
                released SMALLINT NOT NULL, PRIMARY KEY (queue, order_key)';
        $tables[] = "weft_blocked_messages (
                position {$this->counter()}, queue VARCHAR(250) NOT NULL, order_key VARCHAR(200) NOT NULL, message_id VARCHAR(64) NOT NULL,
                type VARCHAR(200) NOT NULL, headers TEXT NOT NULL, body {$bytes} NOT NULL, UNIQUE (queue, message_id)";
        $tables[] = 'weft_rate_limits (name VARCHAR(255) NOT NULL PRIMARY KEY, reserved_us BIGINT NOT NULL, clock_us BIGINT NOT NULL';
        $indexes = ['weft_inbox' => 'handled_at', 'weft_redeliveries' => 'updated_at', 'weft_delayed' => 'due', 'weft_blocked_messages' => 'queue, order_key, position'];
        $statements = $this->driver === self::POSTGRES ? ["SELECT pg_advisory_xact_lock(hashtext('weft tables'))"] : [];
        foreach ($tables as $table) {
            $name = (string) \strstr($table, ' ', true);
            $inline = isset($indexes[$name]) && !$this->indexesByName() ? ", INDEX ({$indexes[$name]})" : '';
            $statements[] = 'CREATE TABLE IF NOT EXISTS ' . $this->columns($table) . "{$inline})";
            if (isset($indexes[$name]) && $this->indexesByName()) {
                $first = (string) \strtok($indexes[$name], ',');
                $statements[] = "CREATE INDEX IF NOT EXISTS {$name}_{$first} ON {$name} {$this->indexOf($name, $indexes[$name])}";
            }
        }

        return $statements;
    }

    /** MariaDB collations treat "a", "A", "á" and "a " as equal, and its TEXT is limited to 64 KiB. */
    private function columns(string $table): string
    {
        return $this->indexesByName() ? $table : \strtr($table, ['VARCHAR(' => 'VARBINARY(', ' TEXT ' => ' LONGTEXT CHARACTER SET utf8mb4 ']);
    }

    /** An expression for the current time, not that of the start of the transaction. */
    public function microseconds(): string
    {
        return match ($this->driver) {
            self::POSTGRES => '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint',
            self::SQLITE => "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
            default => 'CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)',
        };
    }

    /** The column type for bytes. */
    public function bytes(): string
    {
        return match ($this->driver) {
            self::POSTGRES => 'BYTEA',
            self::SQLITE => 'BLOB',
            default => 'LONGBLOB',
        };
    }

    private function counter(): string
    {
        return match ($this->driver) {
            self::POSTGRES => 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
            self::SQLITE => 'INTEGER PRIMARY KEY AUTOINCREMENT',
            default => 'BIGINT AUTO_INCREMENT PRIMARY KEY',
        };
    }

    /** Inbox rows are inserted in order of time: a block range index finds the old ones and costs an insert nothing. */
    private function indexOf(string $table, string $column): string
    {
        return ($this->driver === self::POSTGRES && $table === 'weft_inbox' ? 'USING brin ' : '') . "({$column})";
    }

    private function indexesByName(): bool
    {
        return \in_array($this->driver, [self::POSTGRES, self::SQLITE], true);
    }

    /**
     * Pads a list to a power of two by repeating its last value.
     *
     * @param non-empty-list<string> $values
     * @return array{string, list<string>}
     */
    private static function padded(string $column, array $values): array
    {
        $count = 1;
        while ($count < \count($values)) {
            $count *= 2;
        }
        $values = \array_pad($values, $count, $values[\count($values) - 1]);

        return ["{$column} IN (" . \implode(', ', \array_fill(0, $count, '?')) . ')', $values];
    }
}
