<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * What a {@see Database} and a {@see Transaction} have in common: code that takes a Connection works in both.
 */
interface Connection
{
    /**
     * Runs one statement.
     *
     * Placeholders are `?` with a list of parameters or `:name` with an array keyed by name; `??` is a literal `?`.
     * Parameters may be null, bool, int, float, string, list, {@see Bytes}, {@see \DateTimeInterface}, a backed enum,
     * {@see \Stringable}, {@see \JsonSerializable} or an array with string keys (sent as JSON).
     *
     * @param array<int|string, mixed> $params
     *
     * @throws SqlException the subclass names the cause
     */
    public function execute(string $sql, array $params = []): Result;

    /**
     * Runs a query and yields its rows while they arrive, so that a result of any size needs little memory.
     *
     * Leaving the loop early ends the query on the server.
     *
     * @param array<int|string, mixed> $params
     * @param positive-int $chunk rows fetched at a time
     *
     * @return iterable<int, array<string, mixed>>
     *
     * @throws SqlException
     */
    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable;

    /**
     * Runs `$work` in a transaction: commits when it returns, rolls back when it throws, and passes on what it
     * returned or threw. Inside a transaction it is a savepoint.
     *
     * @template T
     *
     * @param callable(Transaction): T $work
     *
     * @return T
     *
     * @throws SqlException when a statement or the commit fails; then nothing took effect
     */
    public function transaction(callable $work): mixed;
}
