<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Pool\Leases;
use Weft\Pool\Lifetime;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Sql\Database;

/** Connections that are lent and given back. */
final class Pooled implements Connections
{
    private readonly Database $database;
    private readonly string $sleep;

    public function __construct(string $url, Settings $settings)
    {
        $this->sleep = Sleep::sql($url);
        $this->database = Database::connect($url, self::options($settings), Sleep::hooks($url, $settings));
    }

    /** What the parameters mean to a pool of Weft. What is not among them has its default, which suits production. */
    public static function options(Settings $settings): PoolOptions
    {
        return new PoolOptions(
            size: $settings->number('pool.size'),
            minimumIdle: $settings->number('pool.minimum_idle'),
            timeouts: new Timeouts(
                borrow: $settings->seconds('pool.borrowing_timeout_sec'),
                return: $settings->seconds('pool.returning_timeout_sec'),
            ),
            lifetime: new Lifetime(
                max: $settings->seconds('pool.max_lifetime_sec'),
                renewal: $settings->seconds('pool.max_item_reserving_for_update_waiting_time_sec'),
                idle: $settings->seconds('pool.idle_timeout_sec'),
            ),
            leases: new Leases(leakThreshold: 1.0),
        );
    }

    public function sleep(float $seconds): void
    {
        $this->database->execute($this->sleep, [$seconds])->rows();
    }
}
