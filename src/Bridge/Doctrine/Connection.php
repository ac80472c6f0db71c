<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine;

use Doctrine\DBAL\Driver\Exception\NoIdentityValue;
use Doctrine\DBAL\ParameterType;
use Weft\Bridge\Doctrine\Internal\VersionedConnection;
use Weft\Bridge\Internal\Literal;
use Weft\Pool\PoolException;
use Weft\Sql\Database;
use Weft\Sql\Driver as Kind;
use Weft\Sql\Internal\PlainSession;
use Weft\Sql\SqlException;
use Weft\UsageError;

/**
 * DBAL's connection. It borrows a connection of the pool for each statement, and keeps it from `beginTransaction()` to the end of
 * the transaction, and while the session has settings, temporary tables or locks in it.
 *
 * Several tasks may use it: they take turns. A transaction belongs to the task that begins it, and others are refused until it ends, so give each
 * request and each task a connection of its own.
 */
final class Connection implements VersionedConnection
{
    /** @var \WeakMap<Database, string>|null versions of servers, which do not change while a pool lives */
    private static ?\WeakMap $versions = null;

    private ?int $lastId = null;

    /** @internal made by {@see Driver} */
    public function __construct(private readonly PlainSession $session)
    {
    }

    public function prepare(string $sql): Statement
    {
        return new Statement($this, $sql, $this->session->database->driver());
    }

    public function query(string $sql): Result
    {
        return $this->run($sql, null);
    }

    public function exec(string $sql): int
    {
        return $this->run($sql, null)->rowCount();
    }

    /**
     * @internal for {@see Statement}
     *
     * @param array<int|string, mixed>|null $params null: the text has no placeholders, and goes as it is
     *
     * @throws Exception
     */
    public function run(string $sql, ?array $params): Result
    {
        // PostgreSQL keeps the last value of a sequence in the session.
        $keep = $this->kind() === Kind::Postgres && $this->session->inserts($sql);
        try {
            [$columns, $rows, $affected, $id] = $this->session->execute($sql, $params, $keep);
        } catch (SqlException | PoolException | UsageError $failure) {
            throw Exception::of($failure, $this->kind());
        }
        // MySQL says it for each statement: that of LAST_INSERT_ID(expression) also for an UPDATE. SQLite says it where a row was inserted.
        if ($id !== null || ($columns === [] && $this->kind() === Kind::Mysql)) {
            $this->lastId = $id;
        }

        return new Result($columns, $rows, $affected);
    }

    /** @param mixed $value */
    public function quote($value, $type = ParameterType::STRING): string
    {
        $text = (string) $value;

        return $this->kind() === Kind::Mysql ? Literal::ofMysql($text) : Literal::of($text);
    }

    /**
     * @param string|null $name of a sequence, DBAL 3 only
     *
     * @throws \Doctrine\DBAL\Driver\Exception where the session has inserted nothing with an id
     */
    public function lastInsertId($name = null): int|string
    {
        if ($this->kind() === Kind::Postgres) {
            try {
                $value = $name === null ? $this->run('SELECT LASTVAL()', null) : $this->run('SELECT CURRVAL(?)', [(string) $name]);
            } catch (Exception $failure) {
                // 55000: no sequence was used in this session.
                throw $failure->getSQLState() === '55000' ? self::withoutIdentity($failure) ?? $failure : $failure;
            }

            return (string) $value->fetchOne();
        }
        if ($this->lastId === null) {
            $refusal = self::withoutIdentity(null);

            return $refusal === null ? '0' : throw $refusal;
        }

        return (string) $this->lastId;
    }

    /** @throws Exception the session was lost: only {@see rollBack()} makes it usable again */
    public function beginTransaction(): void
    {
        try {
            $this->session->begin();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw Exception::of($failure, $this->kind());
        }
    }

    /** @throws Exception nothing took effect, or the connection was lost after the commit was sent */
    public function commit(): void
    {
        try {
            $this->session->commit();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw Exception::of($failure, $this->kind());
        }
    }

    /** @throws Exception */
    public function rollBack(): void
    {
        try {
            $this->session->rollBack();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw Exception::of($failure, $this->kind());
        }
    }

    public function getServerVersion(): string
    {
        self::$versions ??= new \WeakMap();
        $database = $this->session->database;
        try {
            return self::$versions[$database] ??= (string) $database->execute(match ($this->kind()) {
                Kind::Postgres => 'SHOW server_version',
                Kind::Mysql => 'SELECT VERSION()',
                Kind::Sqlite => 'SELECT sqlite_version()',
            })->value();
        } catch (SqlException | PoolException | UsageError $failure) {
            throw Exception::of($failure, $this->kind());
        }
    }

    /** The pool. */
    public function getNativeConnection(): Database
    {
        return $this->session->database;
    }

    /**
     * Undoes an open transaction and gives the connection back, with everything in its session, so that the next request does not find it: DBAL's
     * own connection is to be closed with it.
     */
    public function reset(): void
    {
        $this->session->reset();
    }

    /** Whether a transaction was begun and has not ended. */
    public function isInTransaction(): bool
    {
        return $this->session->inTransaction();
    }

    private function kind(): Kind
    {
        return $this->session->database->driver();
    }

    /** DBAL 4 says it by an exception, DBAL 3 has none. */
    private static function withoutIdentity(?\Throwable $previous): ?\Throwable
    {
        return \class_exists(NoIdentityValue::class) ? NoIdentityValue::new($previous) : null;
    }
}
