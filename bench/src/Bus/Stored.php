<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** What a run left behind, counted by the runner and not by the contender. */
final class Stored
{
    /**
     * @param int $rows in the table
     * @param int $customers different customers among them
     * @param int $queued messages still in any queue
     */
    public function __construct(
        public readonly int $rows,
        public readonly int $customers,
        public readonly int $queued,
    ) {
    }
}
