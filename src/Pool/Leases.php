<?php

declare(strict_types=1);

namespace Weft\Pool;

/** How a pool lends its resources; see {@see PoolOptions}. */
final class Leases
{
    /**
     * @param float $leakThreshold seconds after which a lease is reported with the call stack of its borrower, once; 0: never, and no
     *     stack is recorded. Set it where leases get lost
     * @param bool $bindToTask whether a task that borrows again gets the lease it holds. Set it where nested calls borrow by themselves.
     *     Only for a {@see Pool}
     * @param bool $autoReturn whether a resource is returned when the task that holds it ends. Switch it off where leases outlive their
     *     tasks. Only for a {@see Pool}
     *
     * @throws \ValueError for a time that is negative, NaN or infinite
     */
    public function __construct(
        public readonly float $leakThreshold = 0.0,
        public readonly bool $bindToTask = false,
        public readonly bool $autoReturn = true,
    ) {
        Internal\Seconds::check('leases', ['leakThreshold' => $leakThreshold]);
    }
}
