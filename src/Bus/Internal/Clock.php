<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * The wall clock of delays, schedules and expiry. Tests can set it, and it then stands still.
 *
 * @internal
 */
final class Clock
{
    /** The end of the year 9999, in milliseconds since 1970: no later time is stored. */
    private const LAST_MILLISECOND = 253_402_300_799_999;

    private static ?float $time = null;

    /** Seconds since 1970, as in microtime(true). */
    public static function now(): float
    {
        return self::$time ?? \microtime(true);
    }

    /** Seconds of a monotonic clock, for durations and timeouts. */
    public static function monotonic(): float
    {
        return \hrtime(true) / 1e9;
    }

    /** The Unix time `$seconds` ago, for what is older than that; 0 for any time before 1970, also for INF. */
    public static function unixTimeBefore(float $seconds): int
    {
        return (int) \max(0.0, \time() - $seconds);
    }

    /** Milliseconds since 1970, rounded up. A time that is too far away, such as INF, becomes the last one that is stored. */
    public static function milliseconds(float $time): int
    {
        return (int) \max(-self::LAST_MILLISECOND, \min(self::LAST_MILLISECOND, \ceil($time * 1000)));
    }

    public static function isVirtual(): bool
    {
        return self::$time !== null;
    }

    /** @param float|null $time null for the real one */
    public static function set(?float $time): void
    {
        self::$time = $time;
    }
}
