<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Status;
use Weft\Internal\Jitter;

/** When a call that failed is made again, as gRPC's proposal A6 has it. */
final class RetryPolicy
{
    /**
     * The pause before the second attempt is `$initialBackoff`, before each further one `$multiplier` times the last, give or take a
     * fifth. A server may name another one, or forbid it, with `grpc-retry-pushback-ms`; one of
     * more than 300 s, or beyond the call's deadline, ends the call with the server's failure.
     *
     * @param list<Status> $statuses those after which it is made again
     * @param int $maxAttempts the first one included, 2 to 5
     * @param float $initialBackoff seconds
     * @param float $maxBackoff seconds
     */
    public function __construct(
        public readonly array $statuses,
        public readonly int $maxAttempts = 4,
        public readonly float $initialBackoff = 0.1,
        public readonly float $maxBackoff = 1.0,
        public readonly float $multiplier = 2.0,
    ) {
        if ($statuses === [] || \in_array(Status::Ok, $statuses, true)) {
            throw new \ValueError('A retry policy names one status at least, and Ok is none to retry after');
        }
        if ($maxAttempts < 2 || $maxAttempts > 5) {
            throw new \ValueError("maxAttempts must be 2 to 5, got $maxAttempts");
        }
        foreach (['initialBackoff' => $initialBackoff, 'maxBackoff' => $maxBackoff, 'multiplier' => $multiplier] as $name => $value) {
            if ($value <= 0) {
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
    }

    /** Seconds before the attempt after `$made` of them. */
    public function backoff(int $made): float
    {
        return Jitter::around(\min($this->initialBackoff * $this->multiplier ** ($made - 1), $this->maxBackoff), 0.2);
    }
}
