<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Internal\Number;

/** @internal */
final class PositiveLimits
{
    /**
     * Checks the numbers among the public properties of an object; null is no limit.
     *
     * @param string $prefix of the names in messages
     * @throws \ValueError for a number that is not greater than 0
     */
    public static function check(string $prefix, object $limits): void
    {
        foreach (\get_object_vars($limits) as $name => $value) {
            // NAN is not greater either.
            if ((\is_int($value) || \is_float($value)) && !($value > 0)) {
                throw new \ValueError("The limit {$prefix}{$name} must be greater than 0, got " . Number::text($value));
            }
        }
    }
}
