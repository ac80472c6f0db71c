<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Internal\Jitter;

/**
 * Random where it decides what becomes of messages. Tests take it out.
 *
 * @internal
 */
final class Random
{
    /** @var (\Closure(): float)|null */
    private static ?\Closure $dice = null;

    /** From 0 to 1. */
    public static function value(): float
    {
        return self::$dice === null ? Jitter::fraction() : (self::$dice)();
    }

    /** @param (\Closure(): float)|null $dice null for the real one */
    public static function by(?\Closure $dice): void
    {
        self::$dice = $dice;
    }
}
