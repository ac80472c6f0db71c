<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Large bodies do not travel through the broker: they are kept in a store, and a message says where. Given to
 * {@see Bus::connect()} of all who send or receive such messages, with the same store.
 */
final class ClaimCheck
{
    /**
     * @param int   $threshold bytes of a body from which on it is kept
     * @param float $retention  seconds a body is kept; longer than a message may wait or be a dead letter. See {@see Bus::prune()}
     */
    public function __construct(
        public readonly ClaimStore $store,
        public readonly int $threshold = 65_536,
        public readonly float $retention = 2_592_000.0,
    ) {
        if ($threshold < 0) {
            throw new \ValueError("The threshold of a claim check must be at least 0 bytes, got {$threshold}");
        }
        if (\is_nan($retention) || $retention <= 0.0) {
            throw new \ValueError("The retention of a claim check must be above 0 seconds, got {$retention}");
        }
    }
}
