<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native\SqlSession;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\SqlException;
use Weft\Sql\StatementCancelledException;
use Weft\UsageError;

use function Weft\shield;

/**
 * A connection as database libraries expect it: statements take effect one after the other, an error leaves the transaction as
 * the server leaves it, and settings, temporary tables and locks stay until {@see reset()}. Results are those of the databases' own
 * PHP extensions: lists of scalars, with the text of the server for dates, JSON and arrays.
 *
 * It borrows a connection of the pool for a statement, and keeps it only while something is in it that the pool would clean away.
 *
 * @internal for the bridges to Doctrine and Laravel
 */
final class PlainSession
{
    private bool $inTransaction = false;

    /** The task that has begun the transaction, until its end is certain. Null: none was begun, or outside of tasks. */
    private ?Coroutine $owner = null;

    public function __construct(private readonly SqlSession $native, private readonly ?HookRunner $hookRunner, public readonly Database $database)
    {
    }

    /**
     * Begins a transaction; `BEGIN` travels with the first statement. It is that of the running task: until it ends, other tasks cannot use the session.
     * Their statements would be part of it, and lost if it is rolled back.
     *
     * @throws UsageError another task has begun one
     */
    public function begin(): void
    {
        $this->refuseOtherTasks('begin one');
        $this->native->begin();
        $this->inTransaction = true;
        $this->owner = Scheduler::$current?->running;
    }

    /** Makes the transaction, if there is one, that of the running task: the one that has begun it uses the session no more. */
    public function adopt(): void
    {
        $this->owner = $this->owner === null ? null : Scheduler::$current?->running;
    }

    /** Whether a statement inserts rows, which may make ids: behind comments, too. */
    public function inserts(string $sql): bool
    {
        return \preg_match($this->start() . '(?:INSERT|REPLACE|WITH)\b/is', $sql) === 1;
    }

    /** Whether a transaction was begun and has not ended, which it does also by an error. */
    public function inTransaction(): bool
    {
        return $this->inTransaction;
    }

    /**
     * @param array<int|string, mixed>|null $params as {@see \Weft\Sql\Connection::execute()} takes them; null: the text has no
     *     placeholders, and goes as it is
     * @param bool $keep whether the next statement needs the same connection, even if this one leaves nothing in it
     *
     * @return array{list<string>, list<list<scalar|null>>, int, ?int} columns, rows, affected rows, last id
     *
     * @throws SqlException
     * @throws UsageError another task has begun a transaction that has not ended
     */
    public function execute(string $sql, ?array $params = null, bool $keep = false): array
    {
        $this->refuseOtherTasks("run a statement in it [statement: $sql]");
        if ($this->database->driver() === Driver::Sqlite && $this->runBoundary($sql)) {
            return [[], [], 0, null];
        }
        if ($this->inTransaction && \preg_match($this->start() . 'ROLLBACK\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b/is', $sql) === 1) {
            // A cancelled task must not leave the inner transaction as it is.
            return shield(fn(): array => $this->rollBackTo($sql, $params, $keep));
        }

        return $this->run($sql, $params, $keep);
    }

    /**
     * @throws SqlException when the commit failed: nothing took effect
     * @throws UsageError another task has begun the transaction
     */
    #[WaitsFor('a commit')]
    public function commit(): void
    {
        $this->refuseOtherTasks('commit it');
        $this->inTransaction = false;
        try {
            HookRunner::through($this->hookRunner, $this->native->commit());
        } finally {
            $this->owner = null;
        }
    }

    /**
     * Undoes the transaction, if there is one, also for a task that is cancelled.
     *
     * @throws UsageError another task has begun it
     */
    public function rollBack(): void
    {
        $this->refuseOtherTasks('roll it back');
        $this->inTransaction = false;
        try {
            shield($this->undo(...));
        } finally {
            $this->owner = null;
        }
    }

    /** Gives the connection back; the pool undoes and cleans what is in it. */
    public function reset(): void
    {
        $this->inTransaction = false;
        $this->owner = null;
        $this->native->reset();
    }

    /**
     * @param string $wanted what the running task was about to do
     *
     * @throws UsageError another task, which is running, has begun a transaction that has not ended
     */
    public function refuseOtherTasks(string $wanted): void
    {
        $task = Scheduler::$current?->running;
        if ($this->owner === null || $task === null || $task === $this->owner || $this->owner->isDone()) {
            return;
        }
        throw new UsageError(
            "Task #{$this->owner->id} has a transaction open in this connection, so task #{$task->id} cannot $wanted: "
            . 'a transaction belongs to the task that begins it, give each task beside it a connection of its own',
        );
    }

    /**
     * @param array<int|string, mixed>|null $params
     *
     * @return array{list<string>, list<list<scalar|null>>, int, ?int}
     */
    #[WaitsFor('the result of a statement')]
    private function run(string $sql, ?array $params, bool $keep): array
    {
        return HookRunner::through($this->hookRunner, $this->native->execute($sql, $params, $keep, Scheduler::$current?->running?->id ?? 0));
    }

    /**
     * Undoes an inner transaction. Where the whole transaction is lost already, there is nothing more to undo: what follows in it, and its commit,
     * still fails.
     *
     * @param array<int|string, mixed>|null $params
     *
     * @return array{list<string>, list<list<scalar|null>>, int, ?int}
     */
    private function rollBackTo(string $sql, ?array $params, bool $keep): array
    {
        try {
            return $this->run($sql, $params, $keep);
        } catch (StatementCancelledException | ConnectionLostException) {
        } catch (SqlException | UsageError $failure) {
            // Of SQLite, whose transaction ends with a cancelled statement.
            $this->database->driver() === Driver::Sqlite && ($failure instanceof UsageError || $failure->sqlState === '25P02') || throw $failure;
        }

        return [[], [], 0, null];
    }

    /** White space and comments before the first word of a statement. */
    private function start(): string
    {
        return '/^(?:[\s;]|' . Comment::of($this->database->driver()) . ')*+';
    }

    /**
     * Begins or ends a transaction of SQLite whose statement is given as text: the servers do that themselves.
     *
     * @return bool whether it was such a statement
     *
     * @throws SqlException
     * @throws UsageError a savepoint outside of a transaction
     */
    private function runBoundary(string $sql): bool
    {
        if (\preg_match($this->start() . '(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT)\b(.*)$/is', $sql, $statement) !== 1) {
            return false;
        }
        [, $verb, $rest] = $statement;
        $verb = \strtoupper($verb);
        if ($verb === 'SAVEPOINT') {
            $this->inTransaction || throw new UsageError("A savepoint of SQLite needs a transaction that was begun before, by beginTransaction() or BEGIN [statement: $sql]");

            return false;
        }
        if (\preg_match('/^(?:\s+(?:DEFERRED|IMMEDIATE|EXCLUSIVE))?(?:\s+TRANSACTION)?[\s;]*$/i', $rest) !== 1) {
            return false;
        }
        if (($verb === 'BEGIN') === $this->inTransaction) {
            throw new UsageError($this->inTransaction ? "There is already an active transaction [statement: $sql]" : "There is no active transaction, begin one by beginTransaction() or BEGIN [statement: $sql]");
        }
        match ($verb) {
            // Those of Weft are always IMMEDIATE.
            'BEGIN' => $this->begin(),
            'ROLLBACK' => $this->rollBack(),
            default => $this->commit(),
        };

        return true;
    }

    #[WaitsFor('a rollback')]
    private function undo(): void
    {
        HookRunner::through($this->hookRunner, $this->native->rollBack());
    }
}
