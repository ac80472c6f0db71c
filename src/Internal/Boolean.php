<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Settings that are true or false. From the environment and from configuration files they come as text.
 *
 * @internal
 */
final class Boolean
{
    /** For messages. */
    public const WORDS = 'true, false, 1, 0, yes, no, on or off';

    /** @return bool|null null: it is none of the {@see WORDS}, in upper or lower case. An empty text is false */
    public static function parse(mixed $value): ?bool
    {
        return \is_bool($value) || \is_int($value) || \is_string($value) ? \filter_var($value, \FILTER_VALIDATE_BOOL, \FILTER_NULL_ON_FAILURE) : null;
    }
}
