<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\BenchmarkException;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

/** Connections that are lent and given back. */
final class Pooled implements Connections
{
    private readonly Database $database;

    /** @throws BenchmarkException when opening a connection is to take longer: the pool opens them by itself */
    public function __construct(string $url, Settings $settings)
    {
        if ($settings->seconds('connection.max_delay_sec') > 0.0) {
            throw new BenchmarkException('connection.max_delay_sec needs pool.enabled=off: the pool has no hook for new connections');
        }
        $this->database = Database::connect($url, new PoolOptions(
            size: $settings->number('pool.size'),
            borrowTimeout: $settings->seconds('pool.borrowing_timeout_sec'),
        ));
    }

    public function sleep(float $seconds): void
    {
        $this->database->execute(Sleep::sql($this->database->driver()), [$seconds])->rows();
    }
}
