<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** Limits of one service or method. Null applies the limit of the server. */
final class MethodLimits
{
    /**
     * @param int|null $messageBytes of a message, compressed or not; more end its call with ResourceExhausted
     * @param float|null $timeout seconds a call may take, whatever deadline its client has; then it ends with DeadlineExceeded
     * @param int|null $inFlight calls in progress at a time, all methods together where it is for a service; more wait
     * @param int $queue calls waiting for one of those to end; more end with ResourceExhausted, 0 lets none wait
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
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
        if ($queue < 0) {
            throw new \ValueError("queue must not be less than 0, got $queue");
        }
    }
}
