<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

use Weft\Bridge\Internal\Literal;
use Weft\Pool\PoolException;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\PlainSession;
use Weft\Sql\SqlException;
use Weft\UsageError;

/**
 * A {@see \PDO} whose statements run on the connections of a {@see Database}, so that they wait without blocking the process. Eloquent,
 * the query builder and code that calls `DB::getPdo()` use it as they use PDO.
 *
 * It borrows a connection for each statement, and keeps it from `beginTransaction()` to the end of the transaction, and while the session
 * has settings, temporary tables or locks in it.
 */
final class Pdo extends \PDO
{
    /** @var \WeakMap<Database, string>|null versions of servers, which do not change while a pool lives */
    private static ?\WeakMap $versions = null;

    /** @var array<int, mixed> */
    private array $attributes;

    private ?int $lastId = null;

    /** @var array{string, int|null, string|null} of the last call */
    private array $error = ['00000', null, null];

    /**
     * @internal made by {@see Connector}
     *
     * @param array<int, mixed> $attributes as those of PDO; the ones that this class does not know have no effect
     *
     * @throws UsageError for a value that code would rely on, and that this class does not have
     */
    public function __construct(private readonly PlainSession $session, array $attributes = [])
    {
        // Not that of the parent, which would connect.
        \array_walk($attributes, static fn(mixed $value, int $attribute) => self::refuse($attribute, $value));
        $this->attributes = $attributes + [
            self::ATTR_ERRMODE => self::ERRMODE_EXCEPTION,
            self::ATTR_CASE => self::CASE_NATURAL,
            self::ATTR_ORACLE_NULLS => self::NULL_NATURAL,
            self::ATTR_STRINGIFY_FETCHES => false,
            self::ATTR_DEFAULT_FETCH_MODE => self::FETCH_BOTH,
            self::ATTR_EMULATE_PREPARES => false,
            self::ATTR_PERSISTENT => false,
            self::ATTR_AUTOCOMMIT => 1,
        ];
    }

    /** @param array<int, mixed> $options */
    public function prepare(string $query, array $options = []): Statement
    {
        return new Statement($this, $query, $options + $this->attributes);
    }

    public function query(string $query, ?int $fetchMode = null, mixed ...$fetchModeArgs): Statement
    {
        $statement = $this->prepare($query);
        $fetchMode === null || $statement->setFetchMode($fetchMode, ...$fetchModeArgs);
        $statement->run(null);

        return $statement;
    }

    public function exec(string $statement): int
    {
        return $this->run($statement, null)[2];
    }

    /**
     * @internal for {@see Statement}
     *
     * @param array<int|string, mixed>|null $params null: the text has no placeholders, and goes as it is
     *
     * @return array{list<string>, list<list<scalar|null>>, int} columns, rows, affected rows
     *
     * @throws DatabaseException
     */
    public function run(string $sql, ?array $params): array
    {
        // PostgreSQL keeps the last value of a sequence in the session. A statement that returns the id itself needs no second one.
        $keep = $this->driver() === Driver::Postgres && \stripos($sql, 'returning') === false && $this->session->inserts($sql);
        try {
            [$columns, $rows, $affected, $id] = $this->session->execute($sql, $params, $keep);
        } catch (SqlException | PoolException | UsageError $failure) {
            throw $this->failed($failure);
        }
        $this->error = ['00000', null, null];
        if ($columns === [] && $this->driver() === Driver::Mysql) {
            // The server says it for each statement: 0 where it has made none, that of LAST_INSERT_ID(expression) also for an UPDATE.
            $this->lastId = $id ?? 0;
        } elseif ($id !== null) {
            // Of SQLite, where a row was inserted.
            $this->lastId = $id;
        }

        return [$columns, $rows, $affected];
    }

    public function quote(string $string, int $type = self::PARAM_STR): string
    {
        return $this->driver() === Driver::Mysql ? Literal::ofMysql($string) : Literal::of($string);
    }

    /** @param string|null $name of a sequence, PostgreSQL only */
    public function lastInsertId(?string $name = null): string
    {
        if ($this->driver() !== Driver::Postgres) {
            return (string) ($this->lastId ?? 0);
        }
        [, $rows] = $name === null ? $this->run('SELECT LASTVAL()', null) : $this->run('SELECT CURRVAL(?)', [$name]);

        return (string) $rows[0][0];
    }

    public function beginTransaction(): bool
    {
        try {
            $this->session->refuseOtherTasks('begin one');
            if ($this->inTransaction()) {
                throw new DatabaseException('There is already an active transaction', 'HY000', null);
            }
            $this->session->begin();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw $this->failed($failure);
        }

        return true;
    }

    public function commit(): bool
    {
        $this->refuseWithoutTransaction();
        try {
            $this->session->commit();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw $this->failed($failure);
        }

        return true;
    }

    public function rollBack(): bool
    {
        $this->refuseWithoutTransaction();
        try {
            $this->session->rollBack();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw $this->failed($failure);
        }

        return true;
    }

    public function inTransaction(): bool
    {
        return $this->session->inTransaction();
    }

    public function getAttribute(int $attribute): mixed
    {
        return match ($attribute) {
            self::ATTR_DRIVER_NAME => match ($this->driver()) {
                Driver::Postgres => 'pgsql',
                Driver::Mysql => 'mysql',
                Driver::Sqlite => 'sqlite',
            },
            self::ATTR_SERVER_VERSION, self::ATTR_CLIENT_VERSION => $this->version(),
            self::ATTR_SERVER_INFO, self::ATTR_CONNECTION_STATUS => "Weft's pool \"{$this->database()->name()}\"",
            default => $this->attributes[$attribute] ?? null,
        };
    }

    /** @throws UsageError for a value that code would rely on, and that this class does not have */
    public function setAttribute(int $attribute, mixed $value): bool
    {
        self::refuse($attribute, $value);
        $this->attributes[$attribute] = $value;

        return true;
    }

    public function errorCode(): ?string
    {
        return $this->error[0];
    }

    /** @return array{string, int|null, string|null} */
    public function errorInfo(): array
    {
        return $this->error;
    }

    /** The pool. */
    public function database(): Database
    {
        return $this->session->database;
    }

    /** Makes an open transaction that of the running task: the task of a request that has ended left it. */
    public function adopt(): void
    {
        $this->session->adopt();
    }

    /** Undoes an open transaction and gives the connection back, with everything in its session: the next request must find nothing of it. */
    public function reset(): void
    {
        $this->lastId = null;
        $this->session->reset();
    }

    private static function refuse(int $attribute, mixed $value): void
    {
        $refused = match ($attribute) {
            self::ATTR_ERRMODE => $value === self::ERRMODE_EXCEPTION ? null : 'ATTR_ERRMODE with another value than ERRMODE_EXCEPTION',
            self::ATTR_ORACLE_NULLS => $value === self::NULL_NATURAL ? null : 'ATTR_ORACLE_NULLS with another value than NULL_NATURAL',
            self::ATTR_STATEMENT_CLASS => 'ATTR_STATEMENT_CLASS',
            default => null,
        };
        $refused === null || throw new UsageError("PDO's attribute $refused is not supported by Weft's connections");
    }

    private function version(): string
    {
        self::$versions ??= new \WeakMap();
        $database = $this->database();
        try {
            return self::$versions[$database] ??= (string) $database->execute(match ($this->driver()) {
                Driver::Postgres => 'SHOW server_version',
                Driver::Mysql => 'SELECT VERSION()',
                Driver::Sqlite => 'SELECT sqlite_version()',
            })->value();
        } catch (SqlException | PoolException $failure) {
            throw $this->failed($failure);
        }
    }

    private function driver(): Driver
    {
        return $this->session->database->driver();
    }

    /** @throws DatabaseException */
    private function refuseWithoutTransaction(): void
    {
        $this->inTransaction() || throw new DatabaseException('There is no active transaction', 'HY000', null);
    }

    private function failed(SqlException|PoolException|UsageError $failure): DatabaseException
    {
        $exception = DatabaseException::of($failure, $this->driver());
        /** @var array{string, int|null, string|null} $info */
        $info = $exception->errorInfo;
        $this->error = $info;

        return $exception;
    }
}
