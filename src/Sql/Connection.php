<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\UsageError;

/**
 * The methods that a {@see Database} and a {@see Transaction} share. Code that takes a Connection works with both.
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
     * Runs one statement for each item, with the item's parameters. Many items share a round trip. All items take effect or none; in a
     * {@see Transaction} they belong to it.
     *
     * The iterable is read as needed: about a thousand items, or 8 MiB of parameters, are in memory at a time.
     *
     * @param iterable<array<int|string, mixed>> $items the parameters of each execution, as {@see execute()} takes them
     *
     * @return list<int> number of rows that each item affected
     *
     * @throws SqlException with the index of the failed item in {@see SqlException::$item}
     */
    public function executeMany(string $sql, iterable $items): array;

    /**
     * Loads data into a table by PostgreSQL's `COPY … FROM STDIN`, unchanged, in the format that the statement names: text, CSV or binary. All of it
     * is stored or nothing. An exception of `$chunks` is passed on.
     *
     * @param iterable<string> $chunks the data, split anywhere; read as fast as the server accepts it
     *
     * @return int number of stored rows
     *
     * @throws SqlException when a line is invalid; the message names it
     * @throws UsageError when the database is not PostgreSQL
     */
    public function copyIn(string $sql, iterable $chunks): int;

    /**
     * Loads rows into a table by PostgreSQL's `COPY`, the fastest way to load rows.
     *
     * @param string $table its name, or schema and name with a dot between, not quoted
     * @param list<string> $columns not quoted; none: all columns of the table in their order
     * @param iterable<array<int|string, mixed>> $rows lists in the order of the columns, or arrays with the columns as keys;
     *     values as {@see execute()} takes them, except that a list is an array, not JSON
     *
     * @return int number of stored rows; all or nothing
     *
     * @throws InvalidParameterException when a row does not fit the columns
     * @throws SqlException when the server refuses a row; the message names its number as the line
     * @throws UsageError when the database is not PostgreSQL
     */
    public function copyRows(string $table, array $columns, iterable $rows): int;

    /**
     * Exports data by PostgreSQL's `COPY … TO STDOUT`, unchanged, in the format that the statement names: text, CSV or binary. For rows use
     * {@see stream()}.
     *
     * @return iterable<int, string> chunks of about 64 KiB, split between rows; leaving the loop early ends the query
     *
     * @throws SqlException
     * @throws UsageError when the database is not PostgreSQL
     */
    public function copyOut(string $sql): iterable;

    /**
     * Sends a notification to the listeners of a channel of PostgreSQL; in a {@see Transaction}, when it commits.
     *
     * @param string $channel at most 63 bytes
     * @param string $payload shorter than 8000 bytes
     *
     * @throws DataException when the name or the payload is too long
     * @throws UsageError when the database is not PostgreSQL
     */
    public function notify(string $channel, string $payload = ''): void;

    /**
     * Runs a query and yields its rows as they arrive, so that a result of any size needs little memory.
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
     * Runs `$work` in a transaction, commits when it returns and rolls back when it throws. Returns or throws what `$work` did. Inside a
     * transaction it is a savepoint.
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
