<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlTransaction;
use Weft\Pool\PoolException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\ForkedProcessError;
use Weft\Runtime\Internal\Scheduler;
use Weft\Sql\Internal\HookRunner;
use Weft\Sql\Internal\Copy;
use Weft\Sql\Internal\Cursors;
use Weft\Sql\Internal\Rows;
use Weft\UsageError;

use function Weft\delay;
use function Weft\shield;

/**
 * One transaction.
 *
 * Statements are deferred: {@see execute()} only notes them, and they travel together, `BEGIN` with the first and the
 * commit with the last (in MySQL after it), when a result is asked for, when a thousand statements or 8 MiB wait, or when the transaction ends.
 * So a failing statement is reported by the first call that needs an answer, at the latest by {@see commit()}; the
 * exception names the statement, and the file and line where it was given ({@see SqlException::$givenAt}). After it only leaving the nested transaction it belongs to, or rolling back, helps.
 *
 * It belongs to one task. Should several use it, they take turns in the order of their calls, and an error or a cancelled
 * wait of one ends the work of all.
 */
final class Transaction implements Connection
{
    /** How many nested transactions are open; the savepoint of each is named by its number. */
    private int $depth = 0;

    private readonly Cursors $cursors;

    /** Ended by a successful call of its user. */
    private bool $ended = false;

    /** @internal made by {@see Database} */
    public function __construct(private readonly SqlTransaction $native, private readonly Driver $driver, private readonly ?HookRunner $hookRunner = null)
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

    public function executeMany(string $sql, iterable $items): array
    {
        if ($this->native->isWaiting()) {
            // So that its errors are not taken for an item's.
            $this->flush();
        }
        /** @var list<list<int>> $affected */
        $affected = [];
        $first = $count = $done = 0;
        foreach ($items as $params) {
            $index = $this->native->pushItem($sql, $params, $done + $count);
            $number = \max($index, ~$index);
            if ($count > 0 && $number !== $first + $count) {
                // Whoever makes the items has used the transaction meanwhile.
                $affected[] = $this->await($this->native->flushItems($first, $count, $done));
                $done += $count;
                $count = 0;
            }
            $first = $count++ === 0 ? $number : $first;
            if ($index < 0) {
                $affected[] = $this->await($this->native->flushItems($first, $count, $done));
                $done += $count;
                $count = 0;
            }
        }
        if ($count > 0) {
            $affected[] = $this->await($this->native->flushItems($first, $count, $done));
        }

        /** @var list<int> */
        return \array_merge(...$affected);
    }

    public function copyIn(string $sql, iterable $chunks): int
    {
        return Copy::chunks($this->native->copyIn($sql), $chunks, $this->hookRunner);
    }

    public function copyRows(string $table, array $columns, iterable $rows): int
    {
        return Copy::rows($this->native->copyIn(Copy::statement($table, $columns)), $columns, $rows, $this->hookRunner);
    }

    public function copyOut(string $sql): iterable
    {
        return Copy::out($this->native->copyOut($sql), $this->hookRunner);
    }

    public function notify(string $channel, string $payload = ''): void
    {
        $this->driver->notifies();
        $this->execute('SELECT pg_notify(?, ?)', [$channel, $payload]);
    }

    /**
     * Rows as the transaction sees them. A server hands those of a query over in chunks, from a cursor, and other statements
     * may run meanwhile; SQLite, and a statement that writes, all at once.
     */
    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable
    {
        if ($chunk < 1) {
            throw new \ValueError("A chunk must have at least 1 row, got {$chunk}");
        }
        $reads = \preg_match('/^[\s(]*(?:SELECT|VALUES|TABLE|WITH\b(?!.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b))\b/is', $sql) === 1;

        return match (true) {
            !$reads, $this->driver === Driver::Sqlite => $this->readAll($sql, $params),
            $this->driver === Driver::Postgres => $this->fetch($sql, $params, $chunk),
            default => Rows::of($this->native->stream($sql, $params, $chunk), $this->hookRunner),
        };
    }

    /**
     * Runs `$work` behind a savepoint. Statements of `$work` have been answered when this returns, so what fails in
     * `$work` is thrown here and leaves the outer transaction usable; an error deferred before is thrown first.
     */
    public function transaction(callable $work): mixed
    {
        $savepoint = 'weft_' . ($this->depth + 1);
        $this->native->push("SAVEPOINT {$savepoint}", []);
        $this->flush();
        $this->depth++;
        try {
            $returned = $work($this);
            $this->native->push("RELEASE SAVEPOINT {$savepoint}", []);
            $this->flush();
            $this->cursors->released($this->depth);
        } catch (\Throwable $thrown) {
            $this->undo($savepoint);
            throw $thrown;
        } finally {
            $this->depth--;
        }

        return $returned;
    }

    /** Sends what is deferred and waits for its answers. */
    public function flush(): void
    {
        $this->await($this->native->flush());
    }

    /**
     * Sends what is deferred and commits. When it returns, the transaction is durable.
     *
     * @throws SqlException when a statement or the commit failed: nothing took effect
     * @throws TransactionOutcomeUnknownException when the connection broke after the commit was sent; later calls and results throw it
     *         also after a wait that was cancelled then, whose `CancelledException` has it as previous exception
     * @throws ConnectionLostException when the connection broke before
     * @throws UsageError when it had ended before, or inside a nested transaction
     */
    public function commit(): void
    {
        $this->refuseInside('commit');
        try {
            $this->await($this->native->commit());
        } catch (CancelledException $cancelled) {
            throw $this->withOutcome($cancelled);
        }
        $this->ended = true;
    }

    /**
     * Undoes everything. Deferred statements are never sent. Does nothing when it had ended before.
     *
     * @throws UsageError inside a nested transaction
     */
    public function rollback(): void
    {
        $this->refuseInside('rollback');
        if ($this->native->isOpen()) {
            $this->await($this->native->rollback());
        }
        $this->ended = true;
    }

    /** Whether it can still be used: false after its end, and after its connection was lost or its wait cancelled. */
    public function isOpen(): bool
    {
        return $this->native->isOpen();
    }

    /**
     * Commits, unless the closure it was made for has ended it.
     *
     * @internal
     */
    public function finish(): void
    {
        if (!$this->ended) {
            $this->commit();
        }
    }

    /**
     * Rolls back because something else failed: a second failure must not hide the first, and a cancelled task must not
     * leave the transaction open.
     *
     * @internal
     */
    public function abandon(): void
    {
        try {
            shield($this->rollback(...));
        } catch (PoolException | SqlException | ForkedProcessError) {
            // The server rolls back what it cannot be told to roll back, and a forked child has nothing to end.
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

    private function await(int $op): mixed
    {
        return HookRunner::through($this->hookRunner, $op);
    }

    /** The cancellation itself, for the scopes that asked for it, which says so if nobody knows what became of the commit. */
    private function withOutcome(CancelledException $cancelled): CancelledException
    {
        // The loop drops the cancelled call in its next turn, and only then it is known whether the commit was sent.
        shield(static fn () => delay(0.0));
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
        if (!$this->native->isOpen()) {
            return;
        }
        $this->native->discard();
        $this->native->push("ROLLBACK TO SAVEPOINT {$savepoint}", []);
        $this->native->push("RELEASE SAVEPOINT {$savepoint}", []);
        try {
            shield($this->flush(...));
        } catch (PoolException | SqlException) {
            // The transaction stays failed, and says so at its next use; what is on its way up is the reason.
        }
    }

    private function refuseInside(string $call): void
    {
        if ($this->depth > 0) {
            throw new UsageError("{$call}() inside a nested transaction: that ends with its closure, the outer one after it");
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
            // The cursor is the parent's, who still reads from it.
        }
    }
}
