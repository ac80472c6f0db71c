<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * The schema version of a message class that uses its class name as type name; see {@see MessageType} for one with another name. The
 * default is 1.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Version
{
    /** @param int<1, max> $number incremented with each change of the schema */
    public function __construct(public readonly int $number)
    {
        if ($number < 1) {
            throw new \ValueError("The version of a message class must be at least 1, got {$number}");
        }
    }
}
