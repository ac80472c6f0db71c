<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

use Weft\Bridge\Internal\MysqlStates;
use Weft\Exception;
use Weft\Internal\Documented;
use Weft\Pool\PoolException;
use Weft\Sql;
use Weft\Sql\Driver;
use Weft\Sql\SqlException;
use Weft\UsageError;

/**
 * A failure of the database as PDO reports it: SQLSTATE as the code, the number and the message of the server in `errorInfo`. Laravel
 * tells duplicates, deadlocks and lost connections by them, and throws it as the previous exception of its `QueryException`.
 */
final class DatabaseException extends \PDOException implements Exception
{
    use Documented;

    /** The names that PDO gives to classes of SQLSTATE, which Laravel looks for. */
    private const NAMES = [
        '23000' => 'Integrity constraint violation', '23502' => 'Not null violation', '23503' => 'Foreign key violation',
        '23505' => 'Unique violation', '23514' => 'Check violation', '40001' => 'Serialization failure', '40P01' => 'Deadlock detected',
        '42000' => 'Syntax error or access violation', '42601' => 'Syntax error', '42P01' => 'Undefined table', '42703' => 'Undefined column',
        '42S01' => 'Base table or view already exists', '42S02' => 'Base table or view not found', '42S22' => 'Column not found',
        '25P02' => 'In failed sql transaction', 'HY000' => 'General error',
    ];

    /**
     * @internal
     *
     * @param int|null $number of the server's error
     */
    public function __construct(string $message, string $state, ?int $number, ?string $text = null, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
        $this->code = $state;
        $this->errorInfo = [$state, $number, $text ?? $message];
    }

    /** @internal */
    public static function of(SqlException|PoolException|UsageError $failure, Driver $driver): self
    {
        $text = $failure->getMessage();
        if ($failure instanceof Sql\TransactionOutcomeUnknownException) {
            return self::made('HY000', 2013, "Lost connection during COMMIT: $text", $failure);
        }
        // A statement is cancelled by an exception of the task; this is a later one, whose session has ended with the cancelled one.
        if ($failure instanceof Sql\ConnectionLostException || $failure instanceof Sql\StatementCancelledException) {
            return match ($driver) {
                Driver::Mysql => self::made('HY000', 2006, "MySQL server has gone away: $text", $failure),
                default => self::made('HY000', 7, "no connection to the server: $text", $failure),
            };
        }
        if ($failure instanceof PoolException || $failure instanceof Sql\ConnectionException) {
            return self::unconnected($failure, $driver, $text);
        }
        $number = (int) $failure->getCode();
        $state = $failure instanceof SqlException ? $failure->sqlState : null;

        return match (true) {
            $driver === Driver::Sqlite && $number !== 0 => self::made(($number & 0xff) === 19 ? '23000' : 'HY000', $number & 0xff, $text, $failure),
            $driver === Driver::Mysql && $number !== 0 => self::made(MysqlStates::of($number, $state), $number, $text, $failure),
            $state !== null && $driver === Driver::Postgres => self::made($state, 7, "ERROR:  $text", $failure),
            // Weft itself has refused it: PDO's drivers have no state for that.
            default => self::made('HY000', 1, $text, $failure),
        };
    }

    private static function unconnected(\Throwable $failure, Driver $driver, string $text): self
    {
        $reason = match (true) {
            $failure instanceof Sql\ConnectionRefusedException, $failure instanceof Sql\ServerDownException => 'Connection refused',
            $failure instanceof Sql\ConnectionTimeoutException => 'Connection timed out',
            $failure instanceof Sql\HostNotFoundException => 'php_network_getaddresses: getaddrinfo failed: Name or service not known',
            default => null,
        };
        [$state, $number, $reason] = match (true) {
            $driver === Driver::Sqlite => ['HY000', 14, 'unable to open database file'],
            $driver === Driver::Mysql && $failure instanceof Sql\AuthenticationException => ['HY000', 1045, 'Access denied'],
            $driver === Driver::Mysql && $failure instanceof Sql\DatabaseNotFoundException => ['HY000', 1049, 'Unknown database'],
            $driver === Driver::Mysql => ['HY000', 2002, $reason],
            $failure instanceof Sql\ConnectionRefusedException => ['08006', 7, 'could not connect to server: Connection refused Is the server running on host'],
            $failure instanceof Sql\HostNotFoundException => ['08006', 7, 'could not translate host name'],
            default => ['08006', 7, $reason],
        };

        return new self("SQLSTATE[$state] [$number] " . ($reason === null ? '' : "$reason: ") . $text, $state, $number, $text, $failure);
    }

    private static function made(string $state, ?int $number, string $text, \Throwable $failure): self
    {
        $name = self::NAMES[$state] ?? null;

        return new self("SQLSTATE[$state]: " . ($name === null ? '' : "$name: ") . ($number === null ? '' : "$number ") . $text, $state, $number, $text, $failure);
    }
}
