<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

use Weft\Protobuf\WellKnown\NullValue;

/**
 * Converts `google.protobuf.Value` to PHP values. Called by the extension.
 *
 * @internal
 */
final class Values
{
    /** Stands for a null that is there, where PHP's null means that nothing is. */
    public static function null(): NullValue
    {
        return NullValue::NULL_VALUE;
    }

    /**
     * @param array<mixed> $fields
     *
     * @return array<mixed>|\stdClass an object if an array could be taken for a list
     */
    public static function structure(array $fields): array|\stdClass
    {
        return \array_is_list($fields) ? (object) $fields : $fields;
    }
}
