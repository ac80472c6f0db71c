<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Sql\Driver;

/**
 * SQL expressions for the Unix time at which they are evaluated, by the clock of the server or, with SQLite, of the machine. The start
 * of the transaction or statement does not do: the statement may have waited for another one's row lock.
 *
 * @internal
 */
final class Clock
{
    /**
     * The only time of MySQL and MariaDB that does not pass through local time, where the end of daylight saving repeats an hour, is
     * the start of the statement: UTC_TIMESTAMP(). SYSDATE() is local time, but its distance to the start, NOW(), is how long the
     * statement has run, plus a multiple of half an hour if the zone's offset has changed since. So the distance counts modulo half
     * an hour, beginning 5 minutes before the start, because the system's clock may be set back while the statement runs. After a wait
     * of more than 25 minutes the time is a multiple of half an hour old.
     */
    private const MYSQL = "TIMESTAMPDIFF(MICROSECOND, DATE'1970-01-01', UTC_TIMESTAMP(6))"
        . ' + MOD(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) + 86700000000, 1800000000) - 300000000';

    /** As a floating point number. */
    public static function seconds(Driver $driver): string
    {
        return match ($driver) {
            Driver::Postgres => 'extract(epoch FROM clock_timestamp())::float8',
            Driver::Mysql => '((' . self::MYSQL . ') / 1e6)',
            Driver::Sqlite => "unixepoch('subsec')",
        };
    }

    /** As an integer. */
    public static function microseconds(Driver $driver): string
    {
        return match ($driver) {
            Driver::Postgres => '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint',
            Driver::Mysql => 'CAST(' . self::MYSQL . ' AS SIGNED)',
            Driver::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
        };
    }
}
