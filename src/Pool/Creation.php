<?php

declare(strict_types=1);

namespace Weft\Pool;

/** How a pool creates resources; see {@see PoolOptions}. */
final class Creation
{
    /**
     * @param positive-int $limit how many resources are created at a time. Change it where the server accepts more or fewer concurrent log-ins
     * @param bool $failFast whether borrows fail at once while the server is known to be down. Switch it off where callers should wait
     *     through an outage
     *
     * @throws \ValueError for a limit below 1
     */
    public function __construct(
        public readonly int $limit = 8,
        public readonly bool $failFast = true,
    ) {
        if ($limit < 1) {
            throw new \ValueError("The option creation.limit of a pool must be at least 1, got {$limit}");
        }
    }
}
