<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlTransaction;
use Weft\Runtime\Internal\Scheduler;

/**
 * One transaction, used by one task at a time.
 *
 * Statements are deferred: {@see execute()} only notes them, and they travel together, `BEGIN` with the first and the
 * commit with the last, when a result is asked for or the transaction ends. So a failing statement is reported by the
 * first call that needs an answer, at the latest by {@see commit()}; the exception names the statement.
 */
final class Transaction implements Connection
{
    private int $savepoints = 0;

    /** @internal made by {@see Database} */
    public function __construct(private readonly SqlTransaction $native)
    {
    }

    public function execute(string $sql, array $params = []): Result
    {
        return new Result(null, $this, $this->native->push($sql, $params));
    }

    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable
    {
        yield from $this->execute($sql, $params)->rows();
    }

    /**
     * Runs `$work` behind a savepoint. Statements of `$work` have been answered when this returns, so what fails in
     * `$work` is thrown here and leaves the outer transaction usable.
     */
    public function transaction(callable $work): mixed
    {
        $savepoint = 'weft_' . ++$this->savepoints;
        $this->native->push("SAVEPOINT {$savepoint}", []);
        $this->flush();
        try {
            $returned = $work($this);
            $this->native->push("RELEASE SAVEPOINT {$savepoint}", []);
            $this->flush();
        } catch (\Throwable $thrown) {
            $this->undo($savepoint);
            throw $thrown;
        }

        return $returned;
    }

    private function undo(string $savepoint): void
    {
        if (!$this->native->isOpen()) {
            return;
        }
        $this->native->push("ROLLBACK TO SAVEPOINT {$savepoint}", []);
        $this->native->push("RELEASE SAVEPOINT {$savepoint}", []);
        $this->flush();
    }

    /** Sends what is deferred and waits for its answers. */
    public function flush(): void
    {
        Scheduler::await($this->native->flush());
    }

    /**
     * Sends what is deferred and commits. When it returns, the transaction is durable.
     *
     * @throws SqlException when a statement or the commit failed: nothing took effect
     * @throws ConnectionLost when the connection broke meanwhile: whether it took effect is unknown
     */
    public function commit(): void
    {
        Scheduler::await($this->native->commit());
    }

    /** Undoes everything. Deferred statements are never sent. */
    public function rollback(): void
    {
        Scheduler::await($this->native->rollback());
    }

    public function isOpen(): bool
    {
        return $this->native->isOpen();
    }

    /**
     * Rolls back because something else failed: a second failure must not hide the first.
     *
     * @internal
     */
    public function abandon(): void
    {
        if (!$this->native->isOpen()) {
            return;
        }
        try {
            $this->rollback();
        } catch (SqlException) {
            // The server rolls back what it cannot be told to roll back.
        }
    }

    /**
     * @internal for {@see Result}
     *
     * @return array{list<string>, list<array<string, mixed>>, int, int|null}
     */
    public function resolve(int $index): array
    {
        $fields = $this->native->result($index);
        if ($fields === null) {
            $this->flush();
            $fields = $this->native->result($index);
        }

        return $fields ?? throw new UsageError('This result belongs to a transaction that ended before it was read');
    }
}
