<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine;

use Doctrine\DBAL\Connection as DbalConnection;
use Doctrine\DBAL\Driver as DbalDriver;
use Doctrine\DBAL\Driver\AbstractMySQLDriver;
use Doctrine\DBAL\Driver\AbstractPostgreSQLDriver;
use Doctrine\DBAL\Driver\API\ExceptionConverter;
use Doctrine\DBAL\Driver\PDO;
use Doctrine\DBAL\Platforms\AbstractPlatform;
use Doctrine\DBAL\Schema\AbstractSchemaManager;
use Doctrine\DBAL\ServerVersionProvider;
use Weft\Bridge\Doctrine\Internal\Databases;
use Weft\Bridge\Doctrine\Internal\VersionAware;
use Weft\Pool\PoolException;
use Weft\Sql\Database;
use Weft\Sql\Driver as Kind;
use Weft\Sql\SqlException;
use Weft\UsageError;

/**
 * A driver of Doctrine DBAL 3 and 4 on {@see Database}: a statement waits without blocking the process, and all connections with
 * the same parameters share one pool.
 *
 * ```php
 * $connection = DriverManager::getConnection(['driver' => 'pdo_pgsql', 'driverClass' => Driver::class, 'host' => 'localhost', 'dbname' => 'app']);
 * ```
 *
 * Where the parameters are given as a URL, or cannot be changed, use {@see Middleware}.
 *
 * Parameters: `driver` (the kind of database: `pdo_pgsql`, `pgsql`, `pdo_mysql`, `mysqli`, `pdo_sqlite`, `sqlite3`), `host`, `port`,
 * `unix_socket`, `user`, `password`, `dbname`, `path`, `memory`, `sslmode`, `sslrootcert`, `ssl_ca` of `mysqli`, `application_name`; in
 * `driverOptions` PDO's options of MySQL for TLS and `INIT_COMMAND`, and either `database`, a {@see Database}, instead of all of them, or
 * `pool`, a {@see \Weft\Pool\PoolOptions} or an array of its arguments.
 */
final class Driver implements VersionAware
{
    private ?DbalDriver $platform = null;

    /**
     * @param Database|null $database lends the connections; null: the one of the parameters
     * @param DbalDriver|null $platform knows the platform, the schema and the errors; null: the one of the kind of database
     */
    public function __construct(private readonly ?Database $database = null, ?DbalDriver $platform = null)
    {
        $this->platform = $platform ?? ($database === null ? null : self::platform($database->driver()));
    }

    /**
     * Asks the server for its version once for each pool, so that a database that is not there fails here, where DBAL expects it.
     * Otherwise it opens no connection: the first statement borrows one.
     *
     * @param array<string, mixed> $params
     *
     * @throws Exception
     * @throws UsageError for parameters that name no database
     */
    public function connect(#[\SensitiveParameter] array $params): Connection
    {
        try {
            $database = $this->database ?? Databases::of($params + ['driver' => $this->name()]);
        } catch (SqlException | PoolException $failure) {
            throw Exception::of($failure, $this->database?->driver());
        }
        $this->platform ??= self::platform($database->driver());

        $connection = new Connection($database->plainSession());
        $connection->getServerVersion();

        return $connection;
    }

    public function getDatabasePlatform(?ServerVersionProvider $versionProvider = null): AbstractPlatform
    {
        if ($this->platform === null) {
            // DBAL 4 asks before it has connected. To know its version, the connection connects.
            $versionProvider?->getServerVersion();
        }

        return $this->known()->getDatabasePlatform(...\func_get_args());
    }

    /** DBAL 3 only. */
    public function createDatabasePlatformForVersion($version): AbstractPlatform
    {
        $driver = $this->known();

        return $driver instanceof \Doctrine\DBAL\VersionAwarePlatformDriver ? $driver->createDatabasePlatformForVersion($version) : $driver->getDatabasePlatform();
    }

    /** DBAL 3 only. */
    public function getSchemaManager(DbalConnection $conn, AbstractPlatform $platform): AbstractSchemaManager
    {
        return $this->known()->getSchemaManager($conn, $platform);
    }

    public function getExceptionConverter(): ExceptionConverter
    {
        return $this->known()->getExceptionConverter();
    }

    private function known(): DbalDriver
    {
        return $this->platform ?? throw new UsageError('The kind of database is not known before the first connection: use ' . Middleware::class . ', or leave "serverVersion" out of the parameters');
    }

    /** The name of the driver that this one takes the place of. */
    private function name(): ?string
    {
        return match (true) {
            $this->platform instanceof AbstractPostgreSQLDriver => 'pdo_pgsql',
            $this->platform instanceof DbalDriver\Mysqli\Driver => 'mysqli',
            $this->platform instanceof AbstractMySQLDriver => 'pdo_mysql',
            $this->platform instanceof DbalDriver\AbstractSQLiteDriver => 'pdo_sqlite',
            default => null,
        };
    }

    /** Drivers of PDO open nothing before they connect, and need no extension for that. */
    private static function platform(Kind $kind): DbalDriver
    {
        return match ($kind) {
            Kind::Postgres => new PDO\PgSQL\Driver(),
            Kind::Mysql => new PDO\MySQL\Driver(),
            Kind::Sqlite => new PDO\SQLite\Driver(),
        };
    }
}
