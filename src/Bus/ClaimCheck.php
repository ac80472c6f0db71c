<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Number;

/**
 * Stores large bodies outside the broker; the message carries a reference. Pass it to {@see Bus::connect()} of every sender and
 * receiver, with the same store.
 */
final class ClaimCheck
{
    /**
     * @param int   $threshold bytes, at least 0; larger bodies are stored. Lower it where the broker has little memory
     * @param float $retention seconds a body is stored, above 0; longer than a message may wait or be a dead letter. A longer delay of a message whose
     *                         body is stored is refused with a \ValueError. See {@see Admin::prune()}. Raise it where dead letters are
     *                         kept for longer
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
            throw new \ValueError('The retention of a claim check must be above 0 seconds, got ' . Number::text($retention));
        }
    }
}
