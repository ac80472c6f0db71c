<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * The wall clock of everything that leaves later, comes again or expires. Tests set it; then it stands still between two calls.
 *
 * @internal
 */
final class Clock
{
    private static ?float $time = null;

    /** Seconds since 1970, as microtime(true) has them. */
    public static function now(): float
    {
        return self::$time ?? \microtime(true);
    }

    /** Seconds of a clock that is never set, for how long something takes or may take. */
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
