<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Pool\PoolOptions;
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
            idleTimeout: $settings->seconds('pool.idle_timeout_sec'),
            maxLifetime: $settings->seconds('pool.max_lifetime_sec'),
            renewalTimeout: $settings->seconds('pool.max_item_reserving_for_update_waiting_time_sec'),
            borrowTimeout: $settings->seconds('pool.borrowing_timeout_sec'),
            returnTimeout: $settings->seconds('pool.returning_timeout_sec'),
            leakThreshold: 1.0,
        );
    }

    public function sleep(float $seconds): void
    {
        $this->database->execute($this->sleep, [$seconds])->rows();
    }
}
