<?php

declare(strict_types=1);

namespace Weft\Grpc;

/**
 * Limits of a gRPC server. `Weft\Http\Limits` has those of connections.
 *
 * Unary calls, streaming calls and health watches have separate limits, so that long calls do not block short ones: `$inFlight`,
 * `$streams` and `$watches`. Each call in progress takes a fiber and counts until its handler has ended, even if its client has
 * disconnected. If the servers of a process together allow more handlers than `maxFibers` of `Weft\run()`, each gets a proportional
 * share; of the share of gRPC half is for unary calls, a quarter for streams and a quarter for watches.
 */
final class Limits
{
    /**
     * @param int $messageBytes the limit of a message, compressed or not; a larger one ends the call with ResourceExhausted
     * @param int $inFlight concurrent unary calls; further calls wait in the queue
     * @param int $queue waiting calls, including those whose request is still arriving; further calls end with Unavailable
     * @param array<string, MethodLimits> $methods by full name, `api.Users` for a service or `api.Users/Get` for a method; limits of a
     *     method take precedence
     * @param int $streams concurrent streaming calls; further calls wait in the queue
     * @param int $streamsPerConnection open streaming calls of one connection; further calls end with ResourceExhausted
     * @param int $watches open health watches; further watches end with ResourceExhausted
     * @param int $watchesPerConnection open health watches of one connection
     * @param float $clientShare the share of `inFlight`, `streams`, `watches` and `queue` for one client address (for IPv6 a /64
     *     network), above 0 and at most 1. Calls beyond the share of `inFlight` and `streams` wait, those beyond the share of `queue` and
     *     `watches` end with ResourceExhausted. Set 1.0 behind a proxy, which is one address. Clients of a Unix socket have no limit.
     * @param float|null $writeTimeout seconds that an HTTP/2 client may read nothing of its responses before its connection is
     *     closed; null is unlimited, for clients that leave messages of a stream unread for longer
     * @param int $bufferedBytes the limit of buffered unary requests over 64 KiB of one connection; flow control holds back the
     *     rest. A larger request is buffered alone
     * @param float $requestTimeout seconds for a unary request to arrive, extended while it arrives with at least 1 KiB/s. A slower
     *     one ends with DeadlineExceeded
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
