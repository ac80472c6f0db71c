<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Status;
use Weft\Internal\Jitter;
use Weft\Internal\Number;

/** When a failed call is retried (gRFC A6). */
final class RetryPolicy
{
    /**
     * The backoff before the second attempt is `$initialBackoff`; each further one is multiplied by `$multiplier`, with a jitter of 20 %.
     * A server may set another backoff or forbid a retry with `grpc-retry-pushback-ms`. A backoff of more than 300 s, or beyond the
     * deadline of the call, ends the call with the failure of the server.
     *
     * @param list<Status> $statuses the retryable statuses
     * @param int $maxAttempts number of attempts with the first, 2 to 5
     * @param float $initialBackoff seconds before the second attempt, above 0
     * @param float $maxBackoff longest backoff in seconds, above 0
     * @param float $multiplier factor from one backoff to the next, above 0
     *
     * @throws \ValueError for a value out of its bounds
     */
    public function __construct(
        public readonly array $statuses,
        public readonly int $maxAttempts = 4,
        public readonly float $initialBackoff = 0.1,
        public readonly float $maxBackoff = 1.0,
        public readonly float $multiplier = 2.0,
    ) {
        if ($statuses === [] || \in_array(Status::Ok, $statuses, true)) {
            throw new \ValueError('A retry policy needs at least one status, and none of them may be Ok');
        }
        if ($maxAttempts < 2 || $maxAttempts > 5) {
            throw new \ValueError("maxAttempts must be 2 to 5, got $maxAttempts");
        }
        foreach (['initialBackoff' => $initialBackoff, 'maxBackoff' => $maxBackoff, 'multiplier' => $multiplier] as $name => $value) {
            if (!($value > 0)) {
                throw new \ValueError("$name must be greater than 0, got " . Number::text($value));
            }
        }
    }

    /** Seconds to wait after `$made` attempts. */
    public function backoff(int $made): float
    {
        return Jitter::around(\min($this->initialBackoff * $this->multiplier ** ($made - 1), $this->maxBackoff), 0.2);
    }
}
