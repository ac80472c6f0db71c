<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * A pooled database of the extension. Calls that return an `int` start an operation: its outcome is taken by id.
 */
final class SqlDatabase
{
    /**
     * Outcome: the SqlDatabase. A server is not contacted yet; an SQLite file is opened.
     *
     * @param array<string, int|float|bool> $pool see `Weft\Pool\PoolOptions::native()`
     * @param string $name what messages call the pool; empty: the database's name
     *
     * @throws \Weft\Sql\InvalidDsn
     */
    public static function open(string $dsn, array $pool, string $name): int
    {
    }

    /** `postgres`, `mysql` or `sqlite`. */
    public function driver(): string
    {
    }

    /**
     * Outcome: `[list<string> columns, list<array<string, mixed>> rows, int affected, ?int lastInsertId, list further]`, `further` with
     * results of the same form.
     * Cancelling the operation cancels the statement on the server.
     *
     * @param array<int|string, mixed> $params
     * @param int $task who borrows the connection, 0 outside of tasks
     */
    public function execute(string $sql, array $params, int $task): int
    {
    }

    /** @param array<int|string, mixed> $params */
    public function stream(string $sql, array $params, int $chunk, int $task): SqlCursor
    {
    }

    /** Sends nothing yet. */
    public function transaction(int $task): SqlTransaction
    {
    }

    /** Outcome: null, once another connection has committed to the file (SQLite only). */
    public function waitForChange(): int
    {
    }

    /** @return array<string, int|float|array<string, int>> */
    public function stats(): array
    {
    }

    /** @return list<array{?int, float, ?string, int, ?string, ?string}> task, seconds, file, line, statement, stack */
    public function holders(): array
    {
    }

    /** Outcome: null, when there are leaks to report. */
    public function leaked(): int
    {
    }

    /** @return list<array{?int, float, ?string, int, ?string, ?string}> those found since the last call */
    public function leaks(): array
    {
    }

    public function resize(int $size, int $minimum_idle): void
    {
    }

    public function suspend(): void
    {
    }

    public function resume(): void
    {
    }

    public function reset(): void
    {
    }

    /** Outcome: null, once every connection is closed. */
    public function close(): int
    {
    }
}

final class SqlTransaction
{
    /**
     * Notes a statement without sending it.
     *
     * @param array<int|string, mixed> $params
     *
     * @return int its index, for {@see result()}; `~index`, a negative number, when so much waits that it is time to flush
     */
    public function push(string $sql, array $params): int
    {
    }

    /** The result of a statement that was answered, once; null before that and afterwards. */
    public function result(int $index): ?array
    {
    }

    /** Forgets what was noted and not sent; the results of those statements are errors. */
    public function discard(): void
    {
    }

    /** Outcome: null, once all noted statements are answered; the first error fails the transaction. */
    public function flush(): int
    {
    }

    /** Outcome: null, once the transaction is durable. */
    public function commit(): int
    {
    }

    /** Outcome: null, once everything is undone. Noted statements are not sent. */
    public function rollback(): int
    {
    }

    public function isOpen(): bool
    {
    }
}

/** Rows of a large result, a chunk at a time. */
final class SqlCursor
{
    /** Outcome: the next rows, `[]` at the end. */
    public function next(): int
    {
    }

    /** Ends the query if it is still running. */
    public function close(): void
    {
    }
}
