<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Pool\PoolOptions;
use Weft\Sql\Database;

/** A new connection for every query, which is closed after it. */
final class Unpooled implements Connections
{
    public function __construct(private readonly string $url, private readonly Settings $settings)
    {
    }

    public function sleep(float $seconds): void
    {
        $database = Database::connect($this->url, new PoolOptions(size: 1), Sleep::hooks($this->url, $this->settings));
        try {
            $database->execute(Sleep::sql($this->url), [$seconds])->rows();
        } finally {
            $database->close();
        }
    }
}
