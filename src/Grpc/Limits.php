<?php

declare(strict_types=1);

namespace Weft\Grpc;

/**
 * What a server takes from its clients. Those of the connections are in `Weft\Http\Limits`.
 *
 * Calls that end by themselves and calls a client can hold open have budgets of their own, so that neither takes the place of
 * the other: `$inFlight` is for unary calls, `$streams` for those that stream, `$watches` for `grpc.health.v1.Health/Watch`. Each
 * call that is being handled has a fiber, and keeps its place until its handler has ended, though its client has gone. Servers that
 * want more handlers together than `maxFibers` of `Weft\run()` each get their proportional part; of that of gRPC a quarter is for
 * watches, as much for streams, and half for unary calls.
 */
final class Limits
{
    /**
     * @param int $messageBytes of a message, compressed or not; more end its call with ResourceExhausted
     * @param int $inFlight unary calls being handled at a time; more wait in the queue
     * @param int $queue calls waiting for their turn, those whose request still arrives among them; more end with Unavailable
     * @param array<string, MethodLimits> $methods by full name, `api.Users` for a service or `api.Users/Get` for a method, whose
     *     own go before those of its service
     * @param int $streams calls that stream, being handled at a time; more wait in the queue
     * @param int $streamsPerConnection calls that stream, open on one connection; more end with ResourceExhausted
     * @param int $watches of health, open at a time; more end with ResourceExhausted
     * @param int $watchesPerConnection of health, open on one connection
     * @param float $clientShare the part of `inFlight`, `streams`, `watches` and `queue` that one client address (of IPv6 a network of
     *     64 bits) may take, above 0 and up to 1; calls beyond that of `inFlight` and `streams` wait, those beyond that of `queue` and
     *     `watches` end with ResourceExhausted. Set 1.0 behind a proxy, which is one address. Clients of a Unix socket have no
     *     address, and no such limit.
     * @param float|null $writeTimeout seconds a client of HTTP/2 may take nothing of the answers to its calls before its connection is
     *     closed; null is for ever, for clients that leave messages of a stream unread for longer
     * @param int $bufferedBytes of unary requests over 64 KiB that one connection may have waiting for their handlers; the rest
     *     stays with the client until there is room. A request that is larger waits alone
     * @param float $requestTimeout seconds a unary request may take to arrive; as long again each time at least 1 KiB a second of it
     *     has. A slower one ends with DeadlineExceeded
     */
    public function __construct(
        public readonly int $messageBytes = 4_194_304,
        public readonly int $inFlight = 1_000,
        public readonly int $queue = 10_000,
        public readonly array $methods = [],
        public readonly int $streams = 2_000,
        public readonly int $streamsPerConnection = 200,
        public readonly int $watches = 1_000,
        public readonly int $watchesPerConnection = 10,
        public readonly float $clientShare = 0.5,
        public readonly ?float $writeTimeout = 30.0,
        public readonly int $bufferedBytes = 16_777_216,
        public readonly float $requestTimeout = 30.0,
    ) {
        foreach (\get_object_vars($this) as $name => $value) {
            // NAN is not greater either.
            if ($value !== null && !\is_array($value) && !($value > 0)) {
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
        if ($clientShare > 1.0) {
            throw new \ValueError("clientShare must be at most 1, got $clientShare");
        }
    }
}
