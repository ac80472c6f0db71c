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
