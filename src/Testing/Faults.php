<?php

declare(strict_types=1);

namespace Weft\Testing;

/** What goes wrong in a simulated broker, each a probability from 0 to 1. All of it may happen with a real one too. */
final class Faults
{
    /**
     * @param float $reorder   that a message is not delivered in its turn but any of those that wait
     * @param float $duplicate that a message arrives twice, as when a publisher did not see it confirmed and sent it again
     * @param float $crash     that a worker goes away after a handler has committed and before its message is acknowledged:
     *                         everything it holds is delivered again, marked as redelivered
     */
    public function __construct(
        public readonly float $reorder = 0.0,
        public readonly float $duplicate = 0.0,
        public readonly float $crash = 0.0,
    ) {
        foreach ([$reorder, $duplicate, $crash] as $probability) {
            if (!($probability >= 0.0 && $probability <= 1.0)) {
                throw new \ValueError("A probability must be 0 to 1, got {$probability}");
            }
        }
        if ($crash > 0.9) {
            throw new \ValueError("The probability of a crash must be at most 0.9, got {$crash}");
        }
    }

    /** Some of everything. */
    public static function all(): self
    {
        return new self(reorder: 0.3, duplicate: 0.1, crash: 0.1);
    }
}
