<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * What a server takes from its clients. The defaults suit one that faces the internet. Time-outs have a precision of 0.25 s.
 */
final class Limits
{
    /**
     * @param int $connections at a time; more wait in the kernel's queue
     * @param int $inFlight requests whose handlers run at a time, event streams and WebSockets excepted; more wait in the queue. A
     *     handler that streams its answer runs until the answer's end.
     * @param int $queue requests waiting for their turn, or for a small body that is read before; more are answered 503
     * @param int $longLived event streams and WebSockets at a time; more are answered 503. Servers whose `inFlight` and `longLived`
     *     (of gRPC the three of its limits) are more than `maxFibers` of `Weft\run()` together each get their proportional part,
     *     of which `longLived` gets half at most.
     * @param int $longLivedPerConnection the same on one connection
     * @param float $clientShare the part of `connections`, `inFlight`, `queue` and `longLived` that one client address (of IPv6 a network
     *     of 64 bits) may take, above 0 and up to 1; connections beyond it are closed. Set 1.0 behind a proxy, which is one address.
     *     Clients of a Unix socket have no address, and no such limit.
     * @param int $headerCount fields of a request; more are answered 431
     * @param int $headerBytes of request line and fields; more are answered 431
     * @param int $bodyBytes of a request's body; more are answered 413
     * @param float $headerTimeout seconds from the first byte of a request to the end of its header
     * @param float $bodyTimeout seconds between two pieces of a body
     * @param int|null $bodyRate bytes per second a body must arrive with on average; a client may take `bodyTimeout` longer than
     *     that. Only the time for which the server waits counts; null is any rate.
     * @param float $idleTimeout seconds a connection is kept without a request
     * @param float $writeTimeout seconds a client may take nothing of what is sent to it
     * @param float|null $deadline seconds from a request's header to its answer, after which its task is cancelled and the
     *     answer is 503; null is for ever. A streamed body is not in it once it has begun.
     * @param float|null $pingInterval seconds after which a silent HTTP/2 client is asked whether it is there; null is never
     * @param float $pingTimeout seconds such a client may take to answer before its connection is closed
     * @param float|null $minPingInterval seconds an HTTP/2 client must leave between its own pings. Where the third comes too early
     *     and nothing was answered in between, it gets GOAWAY with `too_many_pings` and the connection is closed; null is any.
     * @param float|null $maxAge seconds after which a connection takes no more requests, give or take a tenth: HTTP/2 says GOAWAY,
     *     HTTP/1.1 `connection: close` with its next answer; null is never
     * @param float|null $ageGrace seconds after that in which what is in flight may end; null is for ever
     * @param int $streamWindow bytes an HTTP/2 client may send on one stream before they are read, 65535 to 2147483647. A stream is
     *     no faster than this per round trip: at 50 ms the default is 5 MB/s. It is also what a stream may take of memory.
     */
    public function __construct(
        public readonly int $connections = 10_000,
        public readonly int $inFlight = 1_000,
        public readonly int $queue = 10_000,
        public readonly int $longLived = 5_000,
        public readonly int $longLivedPerConnection = 64,
        public readonly float $clientShare = 0.5,
        public readonly int $headerCount = 100,
        public readonly int $headerBytes = 16_384,
        public readonly int $bodyBytes = 8_388_608,
        public readonly float $headerTimeout = 10.0,
        public readonly float $bodyTimeout = 30.0,
        public readonly ?int $bodyRate = 500,
        public readonly float $idleTimeout = 75.0,
        public readonly float $writeTimeout = 30.0,
        public readonly ?float $deadline = 60.0,
        public readonly ?float $pingInterval = null,
        public readonly float $pingTimeout = 20.0,
        public readonly ?float $minPingInterval = null,
        public readonly ?float $maxAge = null,
        public readonly ?float $ageGrace = null,
        public readonly int $streamWindow = 262_144,
    ) {
        foreach (\get_object_vars($this) as $name => $value) {
            if ($value !== null && $value <= 0) {
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
        if ($clientShare > 1.0) {
            throw new \ValueError("clientShare must be at most 1, got $clientShare");
        }
        if ($headerBytes < 8_192) {
            throw new \ValueError("headerBytes must be at least 8192, got $headerBytes");
        }
        if ($streamWindow < 65_535 || $streamWindow > 0x7fff_ffff) {
            throw new \ValueError("streamWindow must be from 65535 to 2147483647, got $streamWindow");
        }
    }
}
