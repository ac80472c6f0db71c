<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Random variation of intervals, so that processes do not act at the same moment.
 *
 * @internal
 */
final class Jitter
{
    /** `$seconds`, varied by at most the fraction `$part`. Seeds set by the program have no effect. */
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
