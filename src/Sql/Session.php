<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlDatabase;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\UsageError;

/** One connection in the hands of a hook, see {@see \Weft\Pool\Hooks}; of no use when the hook has returned. */
final class Session
{
    /**
     * @internal made for a hook
     *
     * @param int $id the server's number of the session: `pg_backend_pid()`, `CONNECTION_ID()`
     */
    public function __construct(private readonly SqlDatabase $native, private readonly int $call, public readonly int $id)
    {
    }

    /**
     * Runs one statement on this connection, with the parameters of {@see Connection::execute()}.
     *
     * @param array<int|string, mixed> $params
     *
     * @throws SqlException
     * @throws UsageError when the connection is closed, or the hook has returned
     */
    #[WaitsFor('the result of a statement of a hook')]
    public function execute(string $sql, array $params = []): Result
    {
        return new Result(Scheduler::await($this->native->executeInHook($this->call, $sql, $params)));
    }
}
