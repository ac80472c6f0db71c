<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native\SqlSession;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Sql\Database;
use Weft\Sql\SqlException;

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
    public function __construct(private readonly SqlSession $native, private readonly ?HookRunner $hookRunner, public readonly Database $database)
    {
    }

    /** Begins a transaction; `BEGIN` travels with the first statement. */
    public function begin(): void
    {
        $this->native->begin();
    }

    /**
     * @param array<int|string, mixed>|null $params as {@see \Weft\Sql\Connection::execute()} takes them; null: the text has no
     *     placeholders, and goes as it is
     * @param bool $keep whether the next statement needs the same connection, even if this one leaves nothing in it
     *
     * @return array{list<string>, list<list<scalar|null>>, int, ?int} columns, rows, affected rows, last id
     *
     * @throws SqlException
     */
    #[WaitsFor('the result of a statement')]
    public function execute(string $sql, ?array $params = null, bool $keep = false): array
    {
        return HookRunner::through($this->hookRunner, $this->native->execute($sql, $params, $keep, Scheduler::$current?->running?->id ?? 0));
    }

    /** @throws SqlException when the commit failed: nothing took effect */
    #[WaitsFor('a commit')]
    public function commit(): void
    {
        HookRunner::through($this->hookRunner, $this->native->commit());
    }

    /** Undoes the transaction, if there is one. */
    #[WaitsFor('a rollback')]
    public function rollBack(): void
    {
        HookRunner::through($this->hookRunner, $this->native->rollBack());
    }

    /** Gives the connection back; the pool undoes and cleans what is in it. */
    public function reset(): void
    {
        $this->native->reset();
    }
}
