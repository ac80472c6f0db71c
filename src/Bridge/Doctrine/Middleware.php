<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine;

use Doctrine\DBAL\Driver as DbalDriver;
use Doctrine\DBAL\Driver\Middleware as DbalMiddleware;
use Weft\Sql\Database;

/**
 * Puts {@see Driver} in the place of any driver for PostgreSQL, MySQL, MariaDB or SQLite, so that the parameters of a connection stay
 * as they are, `DATABASE_URL` included:
 *
 * ```php
 * $configuration->setMiddlewares([new Weft\Bridge\Doctrine\Middleware(), …]);
 * ```
 *
 * Give it first: middlewares before it would wrap a driver that is not used.
 */
final class Middleware implements DbalMiddleware
{
    /** @param Database|null $database lends the connections; null: one pool for each set of parameters */
    public function __construct(private readonly ?Database $database = null)
    {
    }

    public function wrap(DbalDriver $driver): DbalDriver
    {
        return $driver instanceof Driver ? $driver : new Driver($this->database, $driver);
    }
}
