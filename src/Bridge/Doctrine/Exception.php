<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine;

use Doctrine\DBAL\Driver\AbstractException;
use Weft\Bridge\Internal\MysqlStates;
use Weft\Pool\PoolException;
use Weft\Sql;
use Weft\Sql\Driver;
use Weft\Sql\SqlException;
use Weft\UsageError;

/**
 * A failure of the database as DBAL's exception converters know it: by SQLSTATE for PostgreSQL, by error number for MySQL, by message
 * for SQLite. DBAL throws it as the previous exception of its own.
 */
final class Exception extends AbstractException
{
    /**
     * @internal
     *
     * @param Driver|null $kind null: not known, the database could not be opened
     */
    public static function of(SqlException|PoolException|UsageError $failure, ?Driver $kind): self
    {
        $state = $failure instanceof SqlException ? $failure->sqlState : null;
        $code = (int) $failure->getCode();
        [$state, $code] = match (true) {
            $kind === Driver::Mysql && $code !== 0 => [MysqlStates::of($code, $state), $code],
            // The server's own state, such as 57P01, is none by which DBAL knows it.
            $code === 0 && $failure instanceof Sql\ConnectionLostException => ['08006', 2006],
            $code !== 0 || $state !== null => [$state, $code],
            $failure instanceof Sql\AuthenticationException => ['08006', 1045],
            $failure instanceof Sql\DatabaseNotFoundException => ['3D000', 1049],
            $failure instanceof Sql\HostNotFoundException => ['08006', 2005],
            $failure instanceof Sql\ConnectionException, $failure instanceof PoolException => ['08006', 2002],
            default => [null, 0],
        };
        $message = match (true) {
            // The word by which DBAL's converter for SQLite knows it.
            $failure instanceof Sql\FileNotOpenedException => "unable to open database file: {$failure->getMessage()}",
            default => $failure->getMessage(),
        };

        return new self($message, $state, $code, $failure);
    }
}
