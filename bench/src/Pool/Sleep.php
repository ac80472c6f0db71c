<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Sql\Driver;

/** The query that waits, which every database spells in its own way. */
final class Sleep
{
    public static function sql(Driver $driver): string
    {
        return $driver === Driver::Postgres ? 'SELECT pg_sleep(?)' : 'SELECT SLEEP(?)';
    }
}
