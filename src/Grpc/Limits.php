<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** What a server takes from its clients. Those of the connections are in `Weft\Http\Limits`. */
final class Limits
{
    /**
     * @param int $messageBytes of a message, compressed or not; more end its call with ResourceExhausted
     * @param int $inFlight calls being handled at a time, streams included; more wait in the queue
     * @param int $queue calls waiting for their turn; more end with Unavailable
     * @param array<string, MethodLimits> $methods by full name, `api.Users` for a service or `api.Users/Get` for a method, whose
     *     own go before those of its service
     */
    public function __construct(
        public readonly int $messageBytes = 4_194_304,
        public readonly int $inFlight = 1_000,
        public readonly int $queue = 10_000,
        public readonly array $methods = [],
    ) {
        foreach (['messageBytes' => $messageBytes, 'inFlight' => $inFlight, 'queue' => $queue] as $name => $value) {
            if ($value <= 0) {
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
    }
}
