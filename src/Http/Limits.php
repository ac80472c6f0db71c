<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * Limits of an HTTP server. The defaults suit a server that faces the internet. Timeouts have a precision of 0.25 s.
 */
final class Limits
{
    /**
     * @param int $connections concurrent connections; further ones wait in the kernel's queue
     * @param int $inFlight concurrently handled requests, without event streams and WebSockets; further ones wait in the queue. A
     *     streamed response counts until its end.
     * @param int $queue requests that wait to be handled, or whose small body is still being read; further ones are answered 503
     * @param int $longLived concurrent event streams and WebSockets; further ones are answered 503. Servers whose `inFlight` and `longLived`
     *     (of gRPC the three of its limits) are more than `maxFibers` of `Weft\run()` together each get their proportional part,
     *     of which `longLived` gets half at most.
     * @param int $longLivedPerConnection the same on one connection
     * @param float $clientShare the part of `connections`, `inFlight`, `queue` and `longLived` that one client address (of IPv6 a network
     *     of 64 bits) may take, above 0 and up to 1; connections beyond it are closed. Set 1.0 behind a proxy, which is one address.
     *     Clients of a Unix socket have no address, and no such limit.
     * @param int $headerCount the maximum number of header fields; more are answered 431
     * @param int $headerBytes the maximum of request line and fields; more are answered 431
     * @param int $bodyBytes the maximum of a request body; more are answered 413
     * @param float $headerTimeout seconds from the first byte of a request to the end of its header
     * @param float $bodyTimeout seconds between two reads of a body
     * @param int|null $bodyRate the minimum average rate of a body in bytes per second; a client may take `bodyTimeout` longer.
     *     Only the time that the server waits counts; null disables it.
     * @param float $idleTimeout seconds that an idle connection is kept
     * @param float $writeTimeout seconds that a client may read nothing of a response
     * @param float|null $deadline seconds from the end of a request's header to the response; then the task is cancelled and the
     *     response is 503. Null is unlimited. A streamed body is not limited once it has begun.
     * @param float|null $pingInterval seconds after which a silent HTTP/2 client is pinged; null disables it
     * @param float $pingTimeout seconds to wait for the answer to a ping before the connection is closed
     * @param float|null $minPingInterval the minimum seconds between pings of an HTTP/2 client. At the third early ping without a
     *     response in between, the connection is closed with GOAWAY `too_many_pings`; null allows any.
     * @param float|null $maxAge seconds after which a connection accepts no more requests, with a jitter of 10 %: HTTP/2 sends GOAWAY,
     *     HTTP/1.1 `connection: close` with the next response; null is unlimited
     * @param float|null $ageGrace seconds after `maxAge` for the requests in flight; null is unlimited
     * @param int $streamWindow the flow control window of an HTTP/2 stream in bytes, 65535 to 2147483647. It limits a stream to that
     *     many bytes per round trip (the default to 5 MB/s at 50 ms), and its buffered bytes.
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
