<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Internal\Number;
use Weft\InvalidDsnError;
use Weft\Native\SqlDatabase;
use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Pool\PoolClosedException;
use Weft\Pool\PoolOptions;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Sql\Internal\Comment;
use Weft\Sql\Internal\HookRunner;
use Weft\Sql\Internal\Copy;
use Weft\Sql\Internal\PlainSession;
use Weft\Sql\Internal\Rows;
use Weft\Sql\Internal\SqliteWriter;
use Weft\UsageError;

use function Weft\delay;

/**
 * A pooled SQL database. Share one per DSN: any number of tasks may use it at the same time.
 *
 * ```php
 * $database = Database::connect('postgres://app@localhost/app');
 * $names = $database->execute('SELECT name FROM customers WHERE id > ?', [7])->column();
 * ```
 */
final class Database implements Connection
{
    /** The first word of a statement that writes rows. */
    private const WRITES = '(?:INSERT|UPDATE|DELETE|REPLACE|MERGE)\b/is';

    /** @var array<string, true> lines that a warning has named */
    private array $warned = [];

    /** @var array<int, int> how many closures of {@see transaction()} a task is in, by its id */
    private array $transactions = [];

    private function __construct(
        private readonly SqlDatabase $native,
        private readonly Driver $driver,
        private readonly string $name,
        private readonly ?HookRunner $hookRunner,
        private readonly bool $createTables,
        private readonly ?SqliteWriter $writer,
    ) {
    }

    /**
     * Opens an SQLite file, and creates it if it is missing. A server is contacted by the first statement.
     *
     * - `postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=ca.pem&connect_timeout=5`
     * - `mysql://user:password@host:3306/database?sslmode=verify-full&sslrootcert=ca.pem`, `mariadb://` as well
     * - `sqlite:relative/path.db`, `sqlite:///absolute/path.db`, `sqlite::memory:`
     *
     * @param Hooks $hooks called with a {@see Session}, each in a task of its own
     * @param bool $createTables whether the bus, sagas, locks and the event store create and upgrade their tables in this database when they
     *     first use them. Pass false where migrations do it (`weft setup --sql`); tables that do not fit are then a {@see SchemaException}
     *
     * @throws InvalidDsnError
     * @throws ConnectionException when the SQLite file cannot be opened
     * @throws UsageError when hooks are passed for SQLite, which has no pool
     */
    #[WaitsFor('a database to open')]
    public static function connect(#[\SensitiveParameter] string $dsn, PoolOptions $pool = new PoolOptions(), Hooks $hooks = new Hooks(), bool $createTables = true): self
    {
        $pdo = [];
        if (\preg_match('/^(mysql|mariadb|pgsql|postgres|postgresql):(?!\/\/)/', $dsn, $pdo) === 1) {
            $scheme = \str_starts_with($pdo[1], 'm') ? $pdo[1] : 'postgres';
            throw new InvalidDsnError("invalid database DSN \"{$pdo[1]}:***\": that is a DSN of PDO; write $scheme://user@host/database");
        }
        $native = Scheduler::await(SqlDatabase::open(new \SensitiveParameterValue($dsn), $pool->native(), $pool->name, $hooks->names()));

        $driver = Driver::from($native->driver());
        if ($driver === Driver::Sqlite && $hooks->names() !== []) {
            throw new UsageError('SQLite has no connection pool, so these hooks would never be called: ' . \implode(', ', $hooks->names()));
        }
        $attended = $hooks->names() !== [] || $pool->leases->leakThreshold > 0.0 && $driver !== Driver::Sqlite;

        $path = $driver === Driver::Sqlite ? \rawurldecode((string) \preg_replace('~^sqlite:(//)?|\?.*$~s', '', $dsn)) : null;
        $name = match (true) {
            $pool->name !== '' => $pool->name,
            $path !== null => $path,
            default => \rawurldecode(\ltrim((string) \parse_url($dsn, \PHP_URL_PATH), '/')),
        };

        return new self($native, $driver, $name, $attended ? new HookRunner($native, $name, $hooks) : null, $createTables, $path === null ? null : SqliteWriter::of($path, $name));
    }

    public function driver(): Driver
    {
        return $this->driver;
    }

    /** The name that messages and metrics use: {@see PoolOptions::$name}, by default the database's name or the path of an SQLite file. */
    public function name(): string
    {
        return $this->name;
    }

    /** Whether Weft creates and upgrades its own tables in this database, see {@see connect()}. */
    public function createsTables(): bool
    {
        return $this->createTables;
    }

    #[WaitsFor('the result of a statement')]
    public function execute(string $sql, array $params = []): Result
    {
        $this->writer?->refuseStatement(self::task(), $sql);
        if ($this->transactions !== [] && \preg_match('/^(?:[\s(]|' . Comment::of($this->driver) . ')*+' . self::WRITES, $sql) === 1) {
            $this->reportOutside('statement');
        }

        return new Result($this->await($this->native->execute($sql, $params, Scheduler::waiter())));
    }

    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable
    {
        if ($chunk < 1) {
            throw new \ValueError("The chunk size must be at least 1 row, got {$chunk}");
        }

        return $this->fetch($sql, $params, $chunk);
    }

    public function executeMany(string $sql, iterable $items): array
    {
        $this->transactions === [] || $this->reportOutside('statement');

        return $this->transaction(static fn (Transaction $transaction): array => $transaction->executeMany($sql, $items));
    }

    public function copyIn(string $sql, iterable $chunks): int
    {
        $this->transactions === [] || $this->reportOutside('COPY');

        return Copy::chunks($this->native->copyIn($sql, self::task()), $chunks, $this->hookRunner);
    }

    public function copyRows(string $table, array $columns, iterable $rows): int
    {
        $this->transactions === [] || $this->reportOutside('COPY');

        return Copy::rows($this->native->copyIn(Copy::statement($table, $columns), self::task()), $table, $columns, $rows, $this->hookRunner);
    }

    public function copyOut(string $sql): iterable
    {
        return Copy::out($this->native->copyOut($sql, self::task()), $this->hookRunner);
    }

    public function notify(string $channel, string $payload = ''): void
    {
        $this->driver->notifies();
        $this->execute('SELECT pg_notify(?, ?)', [$channel, $payload]);
    }

    /**
     * Subscribes to channels of PostgreSQL. When it returns, the server has confirmed the subscription: no later notification is missed.
     *
     * The subscription has its own connection, outside the pool.
     *
     * @param string|list<string> $channels each at most 63 bytes
     * @param float $check seconds without a notification after which a round trip checks the connection; above 0
     *
     * @throws ConnectionException
     * @throws UsageError when the database is not PostgreSQL, or the name of a channel is empty or too long
     */
    #[WaitsFor('PostgreSQL to listen to channels')]
    public function listen(string|array $channels, float $check = 30.0): Listener
    {
        if (!($check > 0.0)) {
            throw new \ValueError('The interval after which a listener checks its connection must be above 0 s, got ' . Number::text($check));
        }

        return new Listener(Scheduler::await($this->native->listen((array) $channels, $check)));
    }

    /**
     * Statements of the closure go through the Transaction that it receives. Those on this object run on another connection: they are not part of
     * the transaction. Where the closure writes by them in the same task, the error log names the line, once. On SQLite they are a {@see UsageError}
     * if the transaction holds the writer.
     *
     * @template T
     *
     * @param callable(Transaction): T $work
     *
     * @return T
     *
     * @throws SqlException when a statement or the commit fails; then nothing took effect
     */
    public function transaction(callable $work): mixed
    {
        $this->transactions === [] || $this->reportOutside('transaction');
        $task = self::task();
        $transaction = $this->begin();
        $this->transactions[$task] = ($this->transactions[$task] ?? 0) + 1;
        try {
            $returned = $work($transaction);
        } catch (\Throwable $thrown) {
            $transaction->abandon();
            throw $thrown;
        } finally {
            if (--$this->transactions[$task] === 0) {
                unset($this->transactions[$task]);
            }
        }
        $transaction->finish();

        return $returned;
    }

    /**
     * Begins a transaction that the caller commits or rolls back. It borrows a connection when its first statements are sent. A transaction that
     * is dropped is rolled back.
     */
    public function begin(): Transaction
    {
        return new Transaction($this->native->transaction(self::task()), $this->driver, $this->hookRunner, $this->writer, self::task());
    }

    /** @internal for the bridges to other database libraries */
    public function plainSession(): PlainSession
    {
        return new PlainSession($this->native->session(), $this->hookRunner, $this);
    }

    /**
     * Waits until another connection or process has committed to the file.
     *
     * @internal for the bus on SQLite
     *
     * @throws \Error for drivers other than SQLite
     */
    #[WaitsFor('a change of an SQLite database')]
    public function waitForChange(): void
    {
        Scheduler::await($this->native->waitForChange());
    }

    /** @return array<string, int|float|array<string, int>> the pool's statistics, see docs/reference/pool.md; empty for SQLite */
    public function stats(): array
    {
        return $this->native->stats();
    }

    /** @return list<Holder> the tasks that hold a connection now, the longest first */
    public function holders(): array
    {
        return \array_map(fn (array $holder): Holder => Holder::of($this->name, $holder), $this->native->holders());
    }

    /**
     * Changes the limits of the pool. Surplus connections are closed when they are idle.
     *
     * @param positive-int     $size        maximum number of connections
     * @param non-negative-int $minimumIdle connections that are kept open in advance
     */
    public function resize(int $size, int $minimumIdle = 0): void
    {
        new PoolOptions(size: $size, minimumIdle: $minimumIdle);
        $this->native->resize($size, $minimumIdle);
    }

    /** Lends and opens no connection until {@see resume()}. Statements wait, at most for the borrow timeout. */
    public function pause(): void
    {
        $this->native->pause();
    }

    public function resume(): void
    {
        $this->native->resume();
    }

    /** Replaces every connection: idle ones now, the others when they are returned. */
    public function reset(): void
    {
        $this->native->reset();
    }

    /**
     * Waits for running statements, then closes every connection. Later statements throw {@see PoolClosedException}.
     *
     * @throws UsageError when the current task holds a connection itself, by a transaction or a stream; the database stays open
     */
    #[WaitsFor('the return of the connections of database "{name}"')]
    public function close(): void
    {
        if ($this->heldHere() !== null) {
            // An operation that was just cancelled returns its connection in the next turn of the loop.
            delay(0.001);
        }
        $held = $this->heldHere();
        if ($held !== null) {
            throw new UsageError("The database \"{$this->name}\" cannot be closed by a task that holds one of its connections, borrowed at {$held->file}:{$held->line}");
        }
        $this->await($this->native->close());
        $this->hookRunner?->finish();
    }

    private function await(int $op): mixed
    {
        return HookRunner::through($this->hookRunner, $op);
    }

    /**
     * Other libraries have one connection, where such a statement would be part of the transaction. It is not refused: an entry that a rollback
     * must not undo is written like this, and so are Weft's own locks and messages, whose lines are left out.
     */
    private function reportOutside(string $what): void
    {
        if (!isset($this->transactions[self::task()])) {
            return;
        }
        $caller = \debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, 2)[1] ?? [];
        [$file, $line] = [$caller['file'] ?? '', $caller['line'] ?? 0];
        if (isset($this->warned["$file:$line"]) || \str_starts_with($file, \dirname(__DIR__) . '/')) {
            return;
        }
        $this->warned["$file:$line"] = true;
        $consequence = $this->driver === Driver::Sqlite ? 'it is refused once the transaction has had an answer, and a rollback does not undo it' : 'a rollback does not undo it';
        // Not a warning of PHP: where those become exceptions, it would prevent what may be meant, once in each process.
        \error_log("Database \"{$this->name}\": the $what at $file:$line is not part of the transaction around it: $consequence. Use the Transaction that the closure receives, or, if that is meant, a task of its own");
    }

    /** The connection that the current task holds. */
    private function heldHere(): ?Holder
    {
        foreach ($this->holders() as $holder) {
            if ($holder->task === self::task()) {
                return $holder;
            }
        }

        return null;
    }

    /** The id of the current task; 0 outside of `Weft\run()`. */
    private static function task(): int
    {
        return Scheduler::$current?->running?->id ?? 0;
    }

    /**
     * @param array<int|string, mixed> $params
     *
     * @return \Generator<int, array<string, mixed>>
     */
    private function fetch(string $sql, array $params, int $chunk): \Generator
    {
        $this->writer?->refuseStatement(self::task(), $sql);
        yield from Rows::of($this->native->stream($sql, $params, $chunk, self::task()), $this->hookRunner);
    }
}
