<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Sql\Database;
use Weft\Sql\PoolOptions;

/** Connections that are lent and given back. */
final class Pooled implements Connections
{
    private readonly Database $database;

    public function __construct(string $url, Settings $settings)
    {
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
