<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlCopyIn;
use Weft\Native\SqlCopyOut;
use Weft\Native\SqlTransaction;
use Weft\Pool\PoolException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\ForkedProcessError;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Sql\Internal\Comment;
use Weft\Sql\Internal\Copy;
use Weft\Sql\Internal\Cursors;
use Weft\Sql\Internal\HookRunner;
use Weft\Sql\Internal\Rollbacks;
use Weft\Sql\Internal\Rows;
use Weft\Sql\Internal\SqliteWriter;
use Weft\UsageError;

use function Weft\delay;
use function Weft\shield;

/**
 * One transaction.
 *
 * Statements are deferred: {@see execute()} queues them. They are sent together when a result is read, when a thousand statements or 8 MiB are
 * queued, or when the transaction ends; `BEGIN` travels with the first and `COMMIT` with the last (in MySQL after it). The first call that needs an
 * answer throws the error of a deferred statement, at the latest {@see commit()}. The exception names the statement, and the file and line that
 * issued it ({@see SqlException::$givenAt}). After an error, leave the nested transaction or roll back.
 *
 * A transaction belongs to one task. If several tasks use it, their calls take turns in the order in which they came, and an error or a
 * cancelled wait of one ends the work of all.
 *
 * ```php
 * $database->transaction(function (Transaction $transaction): void {
 *     $transaction->execute('UPDATE accounts SET cents = cents - ? WHERE id = ?', [500, 1]);
 *     $transaction->execute('UPDATE accounts SET cents = cents + ? WHERE id = ?', [500, 2]);
 * });
 * ```
 */
final class Transaction implements Connection
{
    /** The first words of a statement that only reads. */
    private const READS = '(?:SELECT|VALUES|TABLE|WITH\b(?!.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b))\b/is';

    /** Number of open nested transactions; each names its savepoint by its number. */
    private int $depth = 0;

    private readonly Cursors $cursors;

    private ?Rollbacks $rollbacks = null;

    /** @var array<int, SqlCopyIn|SqlCopyOut> the running COPY of each task, by the number of the task */
    private array $copies = [];

    /** Whether the user has committed or rolled back. */
    private bool $ended = false;

    /** @var (\Closure(string): \Throwable)|null what commit() and rollback() throw while other code than their caller ends the transaction */
    private ?\Closure $refusal = null;

    /** @internal made by {@see Database} */
    public function __construct(private readonly SqlTransaction $native, private readonly Driver $driver, private readonly ?HookRunner $hookRunner, private readonly ?SqliteWriter $writer, private readonly int $task)
    {
        $this->cursors = new Cursors();
    }

    public function execute(string $sql, array $params = []): Result
    {
        $index = $this->native->push($sql, $params);
        if ($index < 0) {
            $this->flush();
            $index = ~$index;
        }

        return new Result(null, $this, $index);
    }

    #[WaitsFor('the results of statements')]
    public function executeMany(string $sql, iterable $items): array
    {
        if ($this->native->isWaiting()) {
            // Otherwise an error of an earlier statement would be taken for one of an item.
            $this->flush();
        }
        $this->refuseDuringCopy();
        /** @var list<list<int>> $affected */
        $affected = [];
        $first = $count = $done = 0;
        foreach ($items as $params) {
            $index = $this->native->pushItem($sql, $params, $done + $count);
            $number = \max($index, ~$index);
            if ($count > 0 && $number !== $first + $count) {
                // The generator of the items has used the transaction.
                $affected[] = $this->flushItems($first, $count, $done);
                $done += $count;
                $count = 0;
            }
            $first = $count++ === 0 ? $number : $first;
            if ($index < 0) {
                $affected[] = $this->flushItems($first, $count, $done);
                $done += $count;
                $count = 0;
            }
        }
        if ($count > 0) {
            $affected[] = $this->flushItems($first, $count, $done);
        }

        return \array_merge(...$affected);
    }

    public function copyIn(string $sql, iterable $chunks): int
    {
        $copy = $this->native->copyIn($sql);
        $task = $this->beginCopy($copy);
        try {
            return Copy::chunks($copy, $chunks, $this->hookRunner);
        } finally {
            unset($this->copies[$task]);
        }
    }

    public function copyRows(string $table, array $columns, iterable $rows): int
    {
        $copy = $this->native->copyIn(Copy::statement($table, $columns));
        $task = $this->beginCopy($copy);
        try {
            return Copy::rows($copy, $table, $columns, $rows, $this->hookRunner);
        } finally {
            unset($this->copies[$task]);
        }
    }

    /**
     * Returns data by `COPY … TO STDOUT`, a chunk at a time. Other calls of the transaction wait for the end of the loop, and throw
     * {@see UsageError} in it. A loop that is left early ends the statement; the transaction goes on.
     *
     * @return iterable<int, string>
     */
    public function copyOut(string $sql): iterable
    {
        return $this->readCopy($this->native->copyOut($sql));
    }

    public function notify(string $channel, string $payload = ''): void
    {
        $this->driver->notifies();
        $this->execute('SELECT pg_notify(?, ?)', [$channel, $payload]);
    }

    /**
     * Streams rows as the transaction sees them. A server sends the rows of a query in chunks, from a cursor, and other statements may run in the
     * loop. SQLite, and statements that write, read all rows first.
     */
    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable
    {
        if ($chunk < 1) {
            throw new \ValueError("The chunk size must be at least 1 row, got {$chunk}");
        }
        $reads = \preg_match('/^(?:[\s(]|' . Comment::of($this->driver) . ')*+' . self::READS, $sql) === 1;

        return match (true) {
            !$reads, $this->driver === Driver::Sqlite => $this->readAll($sql, $params),
            $this->driver === Driver::Postgres => $this->fetch($sql, $params, $chunk),
            default => Rows::of($this->native->stream($sql, $params, $chunk), $this->hookRunner),
        };
    }

    /**
     * Runs `$work` in a savepoint. All statements of `$work` are answered when this returns, so their errors are thrown here and leave the outer
     * transaction usable. The error of an earlier deferred statement is thrown first.
     */
    public function transaction(callable $work): mixed
    {
        $this->refuseDuringCopy();
        $savepoint = 'weft_' . ($this->depth + 1);
        $this->native->push("SAVEPOINT {$savepoint}", []);
        $this->flush();
        $this->depth++;
        try {
            $returned = $work($this);
            $this->native->push("RELEASE SAVEPOINT {$savepoint}", []);
            $this->flush();
            $this->cursors->released($this->depth);
            $this->rollbacks?->released($this->depth);
        } catch (\Throwable $thrown) {
            $this->undo($savepoint);
            throw $thrown;
        } finally {
            $this->depth--;
        }

        return $returned;
    }

    /** Sends the deferred statements and waits for their answers. */
    #[WaitsFor('the results of statements')]
    public function flush(): void
    {
        $this->refuseDuringCopy();
        Scheduler::waiter();
        $takesWriter = $this->takesWriter();
        $this->await($this->native->flush(), $takesWriter);
    }

    /**
     * Sends the deferred statements and commits. When it returns, the transaction is durable.
     *
     * @throws SqlException when a statement or the commit failed; nothing took effect
     * @throws TransactionOutcomeUnknownException when the connection broke after the commit was sent. If the wait is cancelled then, the
     *         `CancelledException` has it as its previous exception, and later calls and results throw it
     * @throws ConnectionLostException when the connection broke before the commit was sent
     * @throws UsageError when the transaction has already ended, or inside a nested transaction
     */
    public function commit(): void
    {
        $this->refusal === null || throw ($this->refusal)('commit');
        $this->commitAll();
    }

    /**
     * Rolls back. Deferred statements are not sent. Does nothing when the transaction has already ended.
     *
     * @throws UsageError inside a nested transaction
     */
    public function rollback(): void
    {
        $this->refusal === null || throw ($this->refusal)('rollback');
        $this->rollBackAll();
    }

    /** Whether the transaction can be used: false after its end, after its connection was lost, and after a wait was cancelled. */
    public function isOpen(): bool
    {
        return $this->native->isOpen();
    }

    /**
     * From now on commit() and rollback() throw: only {@see finish()} and {@see abandon()} end the transaction.
     *
     * @internal
     *
     * @param \Closure(string): \Throwable $refusal makes the exception for the name of the method
     */
    public function reserve(\Closure $refusal): void
    {
        $this->refusal = $refusal;
    }

    /** @internal whether a nested transaction is open */
    public function isNested(): bool
    {
        return $this->depth > 0;
    }

    /**
     * Calls the closure when what the transaction does now is not kept: when it or the savepoint around this call is rolled back, when its
     * commit fails or its outcome is unknown, and when it is dropped.
     *
     * @internal
     *
     * @param \Closure(): void $undo takes back a change in memory; must not throw, wait, or hold the transaction
     */
    public function onRollback(\Closure $undo): void
    {
        ($this->rollbacks ??= new Rollbacks())->add($this->depth, $undo);
    }

    /**
     * Commits, unless the closure of {@see Database::transaction()} has ended the transaction.
     *
     * @internal
     */
    public function finish(): void
    {
        if (!$this->ended) {
            $this->commitAll();
        }
    }

    /**
     * Rolls back after a failure. A second failure must not hide the first, and a cancelled task must not leave the transaction open.
     *
     * @internal
     */
    public function abandon(): void
    {
        try {
            shield($this->rollBackAll(...));
        } catch (PoolException | SqlException | ForkedProcessError) {
            // Without a connection the server rolls back by itself, and a forked child has nothing to end.
        }
    }

    /**
     * @internal for {@see Result}
     *
     * @return array{list<string>, list<array<string, mixed>>, int, int|null, list<mixed>}
     */
    public function resolve(int $index): array
    {
        $fields = $this->native->result($index);
        if ($fields === null) {
            $this->flush();
            $fields = $this->native->result($index);
        }

        return $fields ?? throw new UsageError('The result has been read before, or its transaction ended before it was read');
    }

    /** @return list<int> the affected rows of each */
    #[WaitsFor('the results of statements')]
    private function flushItems(int $first, int $count, int $done): array
    {
        $this->refuseDuringCopy();
        $takesWriter = $this->takesWriter();

        return $this->await($this->native->flushItems($first, $count, $done), $takesWriter);
    }

    #[WaitsFor('a commit')]
    private function commitAll(): void
    {
        $this->refuseInside('commit');
        $this->refuseDuringCopy();
        Scheduler::waiter();
        $this->takesWriter();
        try {
            $this->await($this->native->commit());
        } catch (CancelledException $cancelled) {
            $this->rollbacks?->undone(0);
            throw $this->withOutcome($cancelled);
        } catch (\Throwable $failed) {
            $this->rollbacks?->undone(0);
            throw $failed;
        }
        $this->rollbacks?->committed();
        $this->ended = true;
    }

    #[WaitsFor('a rollback')]
    private function rollBackAll(): void
    {
        $this->refuseInside('rollback');
        $this->rollbacks?->undone(0);
        $this->endCopy();
        if ($this->native->isOpen()) {
            $this->await($this->native->rollback());
        }
        $this->ended = true;
    }

    /**
     * Whether statements wait to be sent, with which a transaction of SQLite takes the writer.
     *
     * @throws UsageError while another transaction of the task holds it
     */
    private function takesWriter(): bool
    {
        if ($this->writer === null || !$this->native->isWaiting()) {
            return false;
        }
        $this->writer->refuseTransaction($this->task, $this);

        return true;
    }

    private function await(int $op, bool $takesWriter = false): mixed
    {
        if (!$takesWriter) {
            return HookRunner::through($this->hookRunner, $op);
        }
        try {
            $outcome = HookRunner::through($this->hookRunner, $op);
        } catch (SqlException $failed) {
            // A transaction that has failed keeps the writer until it is rolled back.
            $this->writer?->holdFor($this, $this->task);
            throw $failed;
        }
        $this->writer?->holdFor($this, $this->task);

        return $outcome;
    }

    /** The cancellation, which scopes recognise as theirs; if the commit was sent, with the unknown outcome as its previous exception. */
    private function withOutcome(CancelledException $cancelled): CancelledException
    {
        // The loop drops the cancelled call in its next turn; only then is it known whether the commit was sent.
        shield(static fn () => delay(0.001));
        try {
            $this->native->checkOutcome();
        } catch (TransactionOutcomeUnknownException $unknown) {
            return new CancelledException("{$cancelled->getMessage()}; {$unknown->getMessage()}", $cancelled->cancellation, $unknown);
        }

        return $cancelled;
    }

    private function undo(string $savepoint): void
    {
        $this->cursors->undone($this->depth);
        $this->rollbacks?->undone($this->depth);
        $this->endCopy();
        if (!$this->native->isOpen()) {
            return;
        }
        $this->native->discard();
        $this->native->push("ROLLBACK TO SAVEPOINT {$savepoint}", []);
        $this->native->push("RELEASE SAVEPOINT {$savepoint}", []);
        try {
            shield($this->flush(...));
        } catch (PoolException | SqlException) {
            // The transaction remains failed and throws at its next use; the exception that is being thrown is the cause.
        }
    }

    /** @return int the task that runs the COPY */
    private function beginCopy(SqlCopyIn|SqlCopyOut $copy): int
    {
        $this->refuseDuringCopy();
        $task = Scheduler::$current?->running?->id ?? 0;
        $this->copies[$task] = $copy;

        return $task;
    }

    /** @return \Generator<int, string> */
    private function readCopy(SqlCopyOut $copy): \Generator
    {
        $task = $this->beginCopy($copy);
        try {
            yield from Copy::out($copy, $this->hookRunner);
        } finally {
            unset($this->copies[$task]);
        }
    }

    /** Ends a COPY of this task whose loop is not over, because an exception still holds it. */
    private function endCopy(): void
    {
        if ($this->copies !== []) {
            ($this->copies[Scheduler::$current?->running?->id ?? 0] ?? null)?->close();
        }
    }

    /** A COPY uses the connection until its end, so that its own task would wait for itself. Other tasks wait their turn. */
    private function refuseDuringCopy(): void
    {
        if ($this->copies !== [] && isset($this->copies[Scheduler::$current?->running?->id ?? 0])) {
            throw new UsageError('A COPY of this transaction is running; finish its loop first');
        }
    }

    private function refuseInside(string $call): void
    {
        if ($this->depth > 0) {
            throw new UsageError("{$call}() cannot be called inside a nested transaction, which ends with its closure");
        }
    }

    /**
     * @param array<int|string, mixed> $params
     *
     * @return \Generator<int, array<string, mixed>>
     */
    private function readAll(string $sql, array $params): \Generator
    {
        yield from $this->execute($sql, $params)->rows();
    }

    /**
     * @param array<int|string, mixed> $params
     *
     * @return \Generator<int, array<string, mixed>>
     */
    private function fetch(string $sql, array $params, int $chunk): \Generator
    {
        $cursor = $this->cursors->open($this->depth);
        $this->execute("DECLARE {$cursor->name()} NO SCROLL CURSOR FOR {$sql}", $params);
        try {
            $key = 0;
            do {
                $rows = $this->execute("FETCH FORWARD {$chunk} FROM {$cursor->name()}")->rows();
                foreach ($rows as $row) {
                    yield $key++ => $row;
                }
            } while (\count($rows) === $chunk);
        } finally {
            if ($this->cursors->close($cursor, $this->depth) && $this->native->isOpen()) {
                $this->close($cursor->name());
            }
        }
    }

    private function close(string $cursor): void
    {
        try {
            $this->native->push("CLOSE {$cursor}", []);
        } catch (ForkedProcessError) {
            // The cursor belongs to the parent process, which still reads from it.
        }
    }
}
