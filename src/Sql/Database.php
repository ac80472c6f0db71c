<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Native\SqlDatabase;
use Weft\Runtime\Internal\Scheduler;

/**
 * A pooled SQL database. Share one per DSN: any number of tasks may use it at once.
 */
final class Database implements Connection
{
    private function __construct(private readonly SqlDatabase $native, private readonly Driver $driver)
    {
    }

    /**
     * For a server nothing is opened yet: the first statement connects. An SQLite file is opened, and made if missing.
     *
     * - `postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=ca.pem&connect_timeout=5`
     * - `sqlite:relative/path.db`, `sqlite:///absolute/path.db`, `sqlite::memory:`
     *
     * @throws InvalidDsn
     * @throws ConnectionFailed when the SQLite file cannot be opened
     */
    public static function connect(string $dsn, PoolOptions $pool = new PoolOptions()): self
    {
        $native = Scheduler::await(SqlDatabase::open($dsn, $pool->size, $pool->borrowTimeout, $pool->name));

        return new self($native, Driver::from($native->driver()));
    }

    public function driver(): Driver
    {
        return $this->driver;
    }

    public function execute(string $sql, array $params = []): Result
    {
        return new Result(Scheduler::await($this->native->execute($sql, $params)));
    }

    public function stream(string $sql, array $params = [], int $chunk = 1000): iterable
    {
        if ($chunk < 1) {
            throw new \ValueError("A chunk must have at least 1 row, got {$chunk}");
        }

        return $this->fetch($sql, $params, $chunk);
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
        return new Transaction($this->native->transaction(), $this->driver);
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

    /** @return array<string, int|float> the pool's numbers: size, idle, in_use, waiting, … */
    public function stats(): array
    {
        return $this->native->stats();
    }

    /** Lets running statements finish, then closes every connection. Later statements throw {@see PoolClosed}. */
    public function close(): void
    {
        Scheduler::await($this->native->close());
    }

    /**
     * @param array<int|string, mixed> $params
     *
     * @return \Generator<int, array<string, mixed>>
     */
    private function fetch(string $sql, array $params, int $chunk): \Generator
    {
        $cursor = $this->native->stream($sql, $params, $chunk);
        try {
            $key = 0;
            while (($rows = Scheduler::await($cursor->next())) !== []) {
                foreach ($rows as $row) {
                    yield $key++ => $row;
                }
            }
        } finally {
            $cursor->close();
        }
    }
}
