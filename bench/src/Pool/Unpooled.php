<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

use function Weft\delay;

/** A new connection for every query, which is closed after it. */
final class Unpooled implements Connections
{
    public function __construct(private readonly string $url, private readonly Settings $settings)
    {
    }

    public function sleep(float $seconds): void
    {
        $database = Database::connect($this->url, new PoolOptions(size: 1));
        try {
            delay($this->settings->randomSeconds('connection.min_delay_sec', 'connection.max_delay_sec'));
            $database->execute(Sleep::sql($database->driver()), [$seconds])->rows();
        } finally {
            $database->close();
        }
    }
}
