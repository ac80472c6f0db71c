<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Internal\Number;

/** Limits of one service or method. Null applies the limit of the server. */
final class MethodLimits
{
    /**
     * @param int|null $messageBytes bytes of a message, compressed or not, at least 1; a larger one ends the call with ResourceExhausted. Raise it
     *     for uploads, lower it for methods that take little
     * @param float|null $timeout seconds for a call, above 0, even if the client's deadline is later; then it ends with DeadlineExceeded. Set it
     *     where clients set no deadline
     * @param int|null $inFlight concurrent calls, at least 1, of all methods together for a service; further calls wait. Set it where a service
     *     behind the method bears only so many calls
     * @param int $queue waiting calls, at least 0; further calls end with ResourceExhausted, with 0 none waits. Lower it where clients give up soon
     */
    public function __construct(
        public readonly ?int $messageBytes = null,
        public readonly ?float $timeout = null,
        public readonly ?int $inFlight = null,
        public readonly int $queue = 100,
    ) {
        foreach (['messageBytes' => $messageBytes, 'timeout' => $timeout, 'inFlight' => $inFlight] as $name => $value) {
            // NAN is not greater either.
            if ($value !== null && !($value > 0)) {
                throw new \ValueError("$name must be greater than 0, got " . Number::text($value));
            }
        }
        if ($queue < 0) {
            throw new \ValueError("queue must not be less than 0, got $queue");
        }
    }
}
