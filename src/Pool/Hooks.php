<?php

declare(strict_types=1);

namespace Weft\Pool;

/**
 * What else happens in the life of a resource. What a hook throws is thrown by the call it belongs to; `created` counts as
 * part of the factory, `closed` as part of closing.
 */
final class Hooks
{
    /**
     * @param ?\Closure(mixed): void $created after the factory has made a resource
     * @param ?\Closure(mixed): void $borrowed before it is lent
     * @param ?\Closure(mixed): void $returned when it comes back, before its reset
     * @param ?\Closure(mixed): void $closed after it was closed
     * @param ?\Closure(Leak): void $leaked once for each that is held longer than `leakThreshold`; by default a warning
     */
    public function __construct(
        public readonly ?\Closure $created = null,
        public readonly ?\Closure $borrowed = null,
        public readonly ?\Closure $returned = null,
        public readonly ?\Closure $closed = null,
        public readonly ?\Closure $leaked = null,
    ) {
    }
}
