<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Pool\Hooks;
use Weft\Sql\Session;

/** The query that waits, which every database spells in its own way. */
final class Sleep
{
    /** @param string $url of the database */
    public static function sql(string $url): string
    {
        return str_starts_with($url, 'postgres') ? 'SELECT pg_sleep(?)' : 'SELECT SLEEP(?)';
    }

    /** Makes a new connection wait for as long as the settings say before anybody gets it. */
    public static function hooks(string $url, Settings $settings): Hooks
    {
        if ($settings->seconds('connection.max_delay_sec') === 0.0) {
            return new Hooks();
        }

        return new Hooks(created: static function (Session $session) use ($url, $settings): void {
            $session->execute(self::sql($url), [$settings->randomSeconds('connection.min_delay_sec', 'connection.max_delay_sec')])->rows();
        });
    }
}
