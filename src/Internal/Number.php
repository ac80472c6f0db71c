<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Numbers in messages.
 *
 * @internal
 */
final class Number
{
    /** As PHP converts it to a string; `NAN` too, for which PHP 8.5 and later warn when they convert it. */
    public static function text(int|float|null $number): string
    {
        return \is_float($number) && \is_nan($number) ? 'NAN' : (string) $number;
    }
}
