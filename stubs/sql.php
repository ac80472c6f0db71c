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
     * @param \SensitiveParameterValue $dsn a string: no stack trace may show its password
     * @param array<string, int|float|bool> $pool see `Weft\Pool\PoolOptions::native()`
     * @param string $name what messages call the pool; empty: the database's name
     * @param list<string> $hooks which there are: created, borrowed, returned, closed
     *
     * @throws \Weft\InvalidDsnError
     */
    public static function open(object $dsn, array $pool, string $name, array $hooks): int
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

    /** Borrows nothing yet. */
    public function session(): SqlSession
    {
    }

    /** Data for a `COPY … FROM STDIN`; nothing is sent yet. */
    public function copyIn(string $sql, int $task): SqlCopyIn
    {
    }

    /** The data of a `COPY … TO STDOUT`; nothing is sent yet. */
    public function copyOut(string $sql, int $task): SqlCopyOut
    {
    }

    /**
     * Outcome: the SqlListener, once the server has confirmed.
     *
     * @param list<string> $channels
     * @param float $check seconds of silence after which the connection is tested
     */
    public function listen(array $channels, float $check): int
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

    /** Outcome: null, when there is work for PHP. */
    public function workArrived(): int
    {
    }

    /**
     * The work since the last call: a hook to call, with the number of the call (0 when its connection is closed) and the
     * server's number of the session, a call that is cancelled, or a holder (see above) that is a leak.
     *
     * @return list<array{string, int|array{?int, float, ?string, int, ?string, ?string}, 2?: int}> `['created'|'renewed'|'borrowed'|'returned'|'closed', call, session]`,
     *     `['abandon', call]`, `['leak', holder]`
     */
    public function work(): array
    {
    }

    /**
     * Outcome: as of {@see execute()}, on the connection of the hook's call.
     *
     * @param array<int|string, mixed> $params
     */
    public function executeInHook(int $call, string $sql, array $params): int
    {
    }

    public function hookReturned(int $call): void
    {
    }

    /** @param int $thrown number of the exception, for {@see \Weft\Pool\Internal\Thrown} */
    public function hookThrew(int $call, int $thrown, string $message): void
    {
    }

    public function resize(int $size, int $minimum_idle): void
    {
    }

    public function pause(): void
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

    /**
     * The same for one item of a batch; errors name it.
     *
     * @param array<int|string, mixed> $params
     */
    public function pushItem(string $sql, array $params, int $item): int
    {
    }

    /**
     * Flushes. Outcome: `list<int>`, the affected rows of `$count` items whose first has the index `$first` and is number
     * `$item` of its batch.
     */
    public function flushItems(int $first, int $count, int $item): int
    {
    }

    /**
     * Rows that the server keeps while other statements run (MySQL only); nothing is sent yet.
     *
     * @param array<int|string, mixed> $params
     */
    public function stream(string $sql, array $params, int $chunk): SqlCursor
    {
    }

    /** Data for a `COPY … FROM STDIN`, after what was noted; nothing is sent yet. */
    public function copyIn(string $sql): SqlCopyIn
    {
    }

    /** The data of a `COPY … TO STDOUT`, after what was noted; nothing is sent yet. */
    public function copyOut(string $sql): SqlCopyOut
    {
    }

    /** Whether something is noted and not sent. */
    public function isWaiting(): bool
    {
    }

    /**
     * The result of a statement that was answered, once; null before that and afterwards.
     *
     * @return array{list<string>, list<array<string, mixed>>, int, int|null, list<mixed>}|null as of {@see SqlDatabase::execute()}
     */
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

    /** Throws `TransactionOutcomeUnknown` when the commit was sent and never answered. */
    public function checkOutcome(): void
    {
    }
}

/**
 * A session that holds a connection only while there is something in it: a transaction, settings, temporary tables, locks.
 * Statements of several tasks take turns. When the wait for one is cancelled, what was in the session is lost, and every call
 * fails until {@see rollBack()} or {@see reset()}.
 */
final class SqlSession
{
    /** The server hears of it with the first statement. */
    public function begin(): void
    {
    }

    /**
     * Outcome: `[list<string> columns, list<list<scalar|null>> rows, int affected, ?int lastInsertId]`; dates, JSON and arrays are
     * the text the server wrote, booleans are 0 and 1 but for PostgreSQL.
     *
     * @param array<int|string, mixed>|null $params null: the text has no placeholders, and goes as it is
     * @param bool $keep whether the next statement needs the same connection, even if this one leaves nothing in it
     * @param int $task who borrows the connection, 0 outside of tasks
     */
    public function execute(string $sql, ?array $params, bool $keep, int $task): int
    {
    }

    /** Outcome: null, once the transaction is durable. */
    public function commit(): int
    {
    }

    /** Outcome: null, once the transaction is undone. */
    public function rollBack(): int
    {
    }

    /** Gives the connection back; the pool undoes what was open and cleans it. */
    public function reset(): void
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

/** Data on its way into a table. */
final class SqlCopyIn
{
    /** Collects a chunk of the data as it is; true when it is time to send. */
    public function write(string $bytes): bool
    {
    }

    /**
     * Collects a row in the text format; true when it is time to send.
     *
     * @param list<mixed> $values
     * @param int $row its number, for messages
     */
    public function row(array $values, int $row): bool
    {
    }

    /** Outcome: null, once what was collected has been taken. */
    public function send(): int
    {
    }

    /** Sends the rest. Outcome: the number of rows stored. */
    public function finish(): int
    {
    }

    /** Gives the `COPY` up unless it has finished. */
    public function close(): void
    {
    }
}

/** Data on its way out of a table. */
final class SqlCopyOut
{
    /** Outcome: the next chunk, null after the last. */
    public function next(): int
    {
    }

    /** Ends the `COPY` if it is still running. */
    public function close(): void
    {
    }
}

/** A subscription to channels. */
final class SqlListener
{
    /** Outcome: null, when there is something to take. Can be cancelled without loss. */
    public function wait(): int
    {
    }

    /** @return list<array{string, string, int}|array{string}> channel, payload and process, or why some may have been missed */
    public function take(): array
    {
    }

    /** Ends the subscription. */
    public function close(): void
    {
    }
}
