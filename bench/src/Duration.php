<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Seconds as people read them. */
final class Duration
{
    private const LONG_SECONDS = 90;

    public static function format(float $seconds): string
    {
        return $seconds < self::LONG_SECONDS ? sprintf('%d s', ceil($seconds)) : sprintf('%d min', ceil($seconds / 60));
    }
}
