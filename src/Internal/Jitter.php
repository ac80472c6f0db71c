<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Keeps many processes from doing the same at the same moment.
 *
 * @internal
 */
final class Jitter
{
    /** `$seconds`, longer or shorter by at most `$part` of it; no seed that a program sets has an influence. */
    public static function around(float $seconds, float $part): float
    {
        return $seconds * (1.0 - $part + 2.0 * $part * self::fraction());
    }

    /** From 0 to 1. */
    public static function fraction(): float
    {
        return \random_int(0, \PHP_INT_MAX) / \PHP_INT_MAX;
    }
}
