<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Internal\Number;

/** When an {@see ApplicationPool} replaces an instance although it works: what an application keeps for itself grows with its requests. */
final class Recycling
{
    /**
     * @param int $requests after this many requests; 0: never
     * @param float $age seconds after it was made, spread by up to two fifths so that instances do not end together; 0: never
     * @param int $memory bytes of PHP's memory that are in use when it is returned; 0: never
     *
     * @throws \ValueError for a negative value
     */
    public function __construct(public readonly int $requests = 0, public readonly float $age = 0.0, public readonly int $memory = 0)
    {
        if ($requests < 0 || !($age >= 0.0) || $memory < 0) {
            throw new \ValueError("An instance is replaced after at least 0 requests, 0 seconds and 0 bytes, got {$requests}, " . Number::text($age) . " and {$memory}");
        }
    }
}
