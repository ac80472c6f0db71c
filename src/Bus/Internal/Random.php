<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Internal\Jitter;

/**
 * Random numbers that decide the outcome of messages. Tests replace the generator.
 *
 * @internal
 */
final class Random
{
    /** @var (\Closure(): float)|null */
    private static ?\Closure $generator = null;

    /** From 0 to 1. */
    public static function value(): float
    {
        return self::$generator === null ? Jitter::fraction() : (self::$generator)();
    }

    /** @param (\Closure(): float)|null $generator null for the real one */
    public static function override(?\Closure $generator): void
    {
        self::$generator = $generator;
    }
}
