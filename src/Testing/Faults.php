<?php

declare(strict_types=1);

namespace Weft\Testing;

use Weft\Internal\Number;

/** Probabilities, from 0 to 1, of faults in a simulated broker. All of them may happen with a real broker, too. */
final class Faults
{
    /**
     * @param float $reorder   probability, 0 to 1, that a message is delivered out of order
     * @param float $duplicate probability, 0 to 1, that a message is delivered twice, as when a sender lost the confirmation and published it again
     * @param float $crash     probability, 0 to 0.9, that a worker ends after a handler has committed and before its message is acknowledged: all of its
     *                         unacknowledged messages are redelivered
     */
    public function __construct(
        public readonly float $reorder = 0.0,
        public readonly float $duplicate = 0.0,
        public readonly float $crash = 0.0,
    ) {
        foreach ([$reorder, $duplicate, $crash] as $probability) {
            if (!($probability >= 0.0 && $probability <= 1.0)) {
                throw new \ValueError('A probability must be 0 to 1, got ' . Number::text($probability));
            }
        }
        if ($crash > 0.9) {
            throw new \ValueError('The probability of a crash must be at most 0.9, got ' . Number::text($crash));
        }
    }

    /** Some of each. */
    public static function all(): self
    {
        return new self(reorder: 0.3, duplicate: 0.1, crash: 0.1);
    }
}
