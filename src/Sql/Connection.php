<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\UsageError;

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
     * Runs one statement once for each item, with the item's parameters: as if in a loop, but many items share a round trip.
     * All of them take effect or none does; in a {@see Transaction} they belong to it.
     *
     * Items are taken as they are needed: about a thousand, or 8 MiB of parameters, are in memory at a time.
     *
     * @param iterable<array<int|string, mixed>> $items the parameters of each execution, as {@see execute()} takes them
     *
     * @return list<int> the rows each item has affected
     *
     * @throws SqlException with the failed item's place in {@see SqlException::$item}
     */
    public function executeMany(string $sql, iterable $items): array;

    /**
     * Takes data into a table by PostgreSQL's `COPY … FROM STDIN`, as it is: in the text, CSV or binary format the statement
     * names. All of it is stored or nothing; what `$chunks` throws is passed on.
     *
     * @param iterable<string> $chunks the data, cut anywhere; more is taken when the server has taken what is there
     *
     * @return int rows stored
     *
     * @throws SqlException with the line in its message, where a line is wrong
     * @throws UsageError for another database than PostgreSQL
     */
    public function copyIn(string $sql, iterable $chunks): int;

    /**
     * Takes rows into a table by PostgreSQL's `COPY`, the fastest way in.
     *
     * @param string $table its name, or schema and name with a dot between, not quoted
     * @param list<string> $columns not quoted; none: all columns of the table in their order
     * @param iterable<array<int|string, mixed>> $rows lists in the order of the columns, or arrays with the columns as keys;
     *     values as {@see execute()} takes them, except that a list is an array, not JSON
     *
     * @return int rows stored: all or nothing
     *
     * @throws InvalidParameterException for a row that does not fit the columns
     * @throws SqlException with the line, which is the number of the row, in its message
     * @throws UsageError for another database than PostgreSQL
     */
    public function copyRows(string $table, array $columns, iterable $rows): int;

    /**
     * Returns data by PostgreSQL's `COPY … TO STDOUT`, as it is: in the text, CSV or binary format the statement names. For
     * rows use {@see stream()}.
     *
     * @return iterable<int, string> pieces of about 64 KiB, cut between rows; leaving the loop early ends the query
     *
     * @throws SqlException
     * @throws UsageError for another database than PostgreSQL
     */
    public function copyOut(string $sql): iterable;

    /**
     * Sends a notification to those who listen to a channel of PostgreSQL; in a {@see Transaction} when it commits.
     *
     * @param string $channel at most 63 bytes
     * @param string $payload shorter than 8000 bytes
     *
     * @throws DataException for a name or payload that is too long
     * @throws UsageError for another database than PostgreSQL
     */
    public function notify(string $channel, string $payload = ''): void;

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
