<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Internal\Number;

/**
 * Checks the times of the options of a pool.
 *
 * @internal
 */
final class Seconds
{
    /**
     * @param array<string, float> $times by option
     * @throws \ValueError
     */
    public static function check(string $group, array $times): void
    {
        foreach ($times as $option => $seconds) {
            if (!($seconds >= 0.0 && $seconds < \INF)) {
                throw new \ValueError("The option {$group}.{$option} of a pool must be a finite number of seconds that is not negative, got " . Number::text($seconds));
            }
        }
    }
}
