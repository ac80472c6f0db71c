<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\InvalidDsnError;
use Weft\Native\SqlDatabase;
use Weft\Pool\Hooks;
use Weft\Pool\Leak;
use Weft\Pool\PoolClosedException;
use Weft\Pool\PoolOptions;
use Weft\Runtime\Internal\Scheduler;
use Weft\Sql\Internal\HookRunner;
use Weft\Sql\Internal\Copy;
use Weft\Sql\Internal\Rows;
use Weft\UsageError;

use function Weft\delay;

/**
 * A pooled SQL database. Share one per DSN: any number of tasks may use it at once.
 */
final class Database implements Connection
{
    private function __construct(
        private readonly SqlDatabase $native,
        private readonly Driver $driver,
        private readonly string $name,
        private readonly ?HookRunner $hookRunner,
        private readonly bool $createTables,
    ) {
    }

    /**
     * For a server nothing is opened yet: the first statement connects. An SQLite file is opened, and made if missing.
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
     * @throws UsageError for hooks of SQLite, which has no pool
     */
    public static function connect(#[\SensitiveParameter] string $dsn, PoolOptions $pool = new PoolOptions(), Hooks $hooks = new Hooks(), bool $createTables = true): self
    {
        $native = Scheduler::await(SqlDatabase::open(new \SensitiveParameterValue($dsn), $pool->native(), $pool->name, $hooks->names()));

        $driver = Driver::from($native->driver());
        if ($driver === Driver::Sqlite && $hooks->names() !== []) {
            throw new UsageError('SQLite has no pool of connections: the hooks ' . \implode(', ', $hooks->names()) . ' would never be called');
        }
        $attended = $hooks->names() !== [] || $pool->leases->leakThreshold > 0.0 && $driver !== Driver::Sqlite;

        $name = match (true) {
            $pool->name !== '' => $pool->name,
            $driver === Driver::Sqlite => \rawurldecode((string) \preg_replace('~^sqlite:(//)?|\?.*$~s', '', $dsn)),
            default => \rawurldecode(\ltrim((string) \parse_url($dsn, \PHP_URL_PATH), '/')),
        };

        return new self($native, $driver, $name, $attended ? new HookRunner($native, $name, $hooks) : null, $createTables);
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

    /** Whether Weft creates and upgrades its own tables in this database, as {@see connect()} was told. */
    public function createsTables(): bool
    {
        return $this->createTables;
    }

    public function execute(string $sql, array $params = []): Result
    {
        return new Result($this->await($this->native->execute($sql, $params, self::task())));
    }

    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable
    {
        if ($chunk < 1) {
            throw new \ValueError("A chunk must have at least 1 row, got {$chunk}");
        }

        return $this->fetch($sql, $params, $chunk);
    }

    public function executeMany(string $sql, iterable $items): array
    {
        return $this->transaction(static fn (Transaction $transaction): array => $transaction->executeMany($sql, $items));
    }

    public function copyIn(string $sql, iterable $chunks): int
    {
        return Copy::chunks($this->native->copyIn($sql, self::task()), $chunks, $this->hookRunner);
    }

    public function copyRows(string $table, array $columns, iterable $rows): int
    {
        return Copy::rows($this->native->copyIn(Copy::statement($table, $columns), self::task()), $columns, $rows, $this->hookRunner);
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
     * Subscribes to channels of PostgreSQL. When it returns, the server has confirmed: what is sent from now on is told.
     *
     * The subscription has a connection of its own, which does not count as one of the pool.
     *
     * @param string|list<string> $channels each at most 63 bytes
     * @param float $check seconds of silence after which a round trip shows whether the server is still there
     *
     * @throws ConnectionException
     * @throws UsageError for another database than PostgreSQL, and for a name of a channel that is empty or too long
     */
    public function listen(string|array $channels, float $check = 30.0): Listener
    {
        if (!($check > 0.0)) {
            throw new \ValueError("The silence after which a connection is checked must be longer than 0 s, got {$check}");
        }

        return new Listener(Scheduler::await($this->native->listen((array) $channels, $check)));
    }

    public function transaction(callable $work): mixed
    {
        $transaction = $this->begin();
        try {
            $returned = $work($transaction);
        } catch (\Throwable $thrown) {
            $transaction->abandon();
            throw $thrown;
        }
        $transaction->finish();

        return $returned;
    }

    /**
     * A transaction whose end is up to the caller. It borrows no connection before its first statement travels; one
     * that is dropped unfinished is rolled back.
     */
    public function begin(): Transaction
    {
        return new Transaction($this->native->transaction(self::task()), $this->driver, $this->hookRunner);
    }

    /**
     * Waits until another connection or process has committed to the file.
     *
     * @throws \Error for drivers other than SQLite
     */
    public function waitForChange(): void
    {
        Scheduler::await($this->native->waitForChange());
    }

    /** @return array<string, int|float|array<string, int>> the pool's numbers, see docs/pool.md; none for SQLite */
    public function stats(): array
    {
        return $this->native->stats();
    }

    /** @return list<Leak> who holds a connection now, the oldest first; none of them need be a leak */
    public function holders(): array
    {
        return \array_map(fn (array $holder): Leak => Leak::of($this->name, $holder), $this->native->holders());
    }

    /**
     * Changes the most and the least connections. What is too much is closed when it is idle.
     *
     * @param positive-int $size
     * @param non-negative-int $minimumIdle
     */
    public function resize(int $size, int $minimumIdle = 0): void
    {
        new PoolOptions(size: $size, minimumIdle: $minimumIdle);
        $this->native->resize($size, $minimumIdle);
    }

    /** From now on no connection is lent or opened; statements wait, at most the borrow timeout, until {@see resume()}. */
    public function suspend(): void
    {
        $this->native->suspend();
    }

    public function resume(): void
    {
        $this->native->resume();
    }

    /** Replaces every connection: the idle ones now, the others when they come back. */
    public function reset(): void
    {
        $this->native->reset();
    }

    /**
     * Lets running statements finish, then closes every connection. Later statements throw {@see PoolClosedException}.
     *
     * @throws UsageError when this task holds a connection itself, by a transaction or a stream; the database stays open
     */
    public function close(): void
    {
        if ($this->heldHere() !== null) {
            // What has just been cancelled lets go with the next turn of the loop.
            delay(0.0);
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

    /** What this task holds. */
    private function heldHere(): ?Leak
    {
        foreach ($this->holders() as $holder) {
            if ($holder->task === self::task()) {
                return $holder;
            }
        }

        return null;
    }

    /** Who borrows. */
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
        yield from Rows::of($this->native->stream($sql, $params, $chunk, self::task()), $this->hookRunner);
    }
}
