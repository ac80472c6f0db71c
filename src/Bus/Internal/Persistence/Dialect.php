<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Sql\Database;
use Weft\Sql\Internal\Clock;

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

    public function __construct(private readonly Database $database)
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

    /** The end of a SELECT that lets no other transaction delete its rows. */
    public function forShare(): string
    {
        return match ($this->driver) {
            self::POSTGRES => ' FOR KEY SHARE',
            self::SQLITE => '',
            default => ' LOCK IN SHARE MODE',
        };
    }

    public function skipLocked(): string
    {
        return $this->locksRows() ? ' FOR UPDATE SKIP LOCKED' : '';
    }

    /**
     * An INSERT that takes the place of the row with the same key. In one statement, because of two transactions that first delete
     * a row which is not there MariaDB lets only one insert it: both have locked the gap.
     *
     * @param non-empty-list<string> $columns of which the first `$keys` are the primary key
     * @param positive-int           $keys
     */
    public function replace(string $table, array $columns, int $keys = 1): string
    {
        $insert = "INTO {$table} (" . \implode(', ', $columns) . ') VALUES (' . \implode(', ', \array_fill(0, \count($columns), '?')) . ')';
        if ($this->driver !== self::POSTGRES) {
            return "REPLACE {$insert}";
        }
        $others = \array_map(static fn(string $column): string => "{$column} = excluded.{$column}", \array_slice($columns, $keys));

        return "INSERT {$insert} ON CONFLICT (" . \implode(', ', \array_slice($columns, 0, $keys)) . ') DO UPDATE SET ' . \implode(', ', $others);
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

    /** An expression for the current Unix time, by the clock of the server or, with SQLite, of the machine. */
    public function seconds(): string
    {
        return match ($this->driver) {
            self::POSTGRES => 'extract(epoch FROM clock_timestamp())::bigint',
            self::SQLITE => "CAST(strftime('%s', 'now') AS INTEGER)",
            default => 'UNIX_TIMESTAMP()',
        };
    }

    /** The Unix time `$seconds` ago, by the clock of {@see seconds()}; 0 for any time before 1970, also for INF. */
    public function unixTimeBefore(float $seconds): int
    {
        return (int) \max(0.0, $this->database->execute("SELECT {$this->seconds()}")->value() - $seconds);
    }

    /** An expression for the current time, not that of the start of the transaction. */
    public function microseconds(): string
    {
        return Clock::microseconds($this->database->driver());
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
