<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\PositiveLimits;
use Weft\Internal\Number;

/**
 * Limits of an HTTP server: how much it does at a time, and groups for everything else. The defaults suit a server that faces the
 * internet. Timeouts are seconds with a precision of 0.25 s.
 *
 * ```
 * $app->http('0.0.0.0:8080', new Limits(clientShare: 1.0, body: new BodyLimits(bytes: 100 << 20)));
 * ```
 */
final class Limits
{
    /**
     * @param int $connections concurrent connections, at least 1; further ones wait in the kernel's queue. Raise it for many idle clients, at about
     *     20 KiB each
     * @param int $inFlight concurrently handled requests, at least 1, without event streams and WebSockets; further ones wait in the queue. A
     *     streamed response counts until its end. Lower it where a request needs much memory
     * @param int $queue requests that wait to be handled, or whose small body is still being read, at least 1; further ones are answered 503. Lower it
     *     where clients give up soon
     * @param float $clientShare the part of `connections`, `inFlight`, `queue` and `longLived` that one client address (of IPv6 a network
     *     of 64 bits) may take, above 0 and up to 1; connections beyond it are closed. Set 1.0 behind a proxy, which is one address, unless it is one of {@see TrustedProxies}.
     *     Clients of a Unix socket have no address, and no such limit
     * @param float|null $deadline seconds from the end of a request's header to the response, above 0; then the task is cancelled and the
     *     response is 503. Null is unlimited. A streamed body is not limited once it has begun. Raise it for slow reports
     * @param float $writeTimeout seconds that a client may read nothing of a response, above 0. Raise it for clients that pause downloads
     * @param LongLivedLimits $longLived event streams and WebSockets
     * @param HeaderLimits $header size and time of a request's header
     * @param BodyLimits $body size, time and rate of a request's body
     * @param Keepalive $keepalive how long connections live
     *
     * @throws \ValueError for a value that is not greater than 0, or a client share above 1
     */
    public function __construct(
        public readonly int $connections = 10_000,
        public readonly int $inFlight = 1_000,
        public readonly int $queue = 10_000,
        public readonly float $clientShare = 0.5,
        public readonly ?float $deadline = 60.0,
        public readonly float $writeTimeout = 30.0,
        public readonly LongLivedLimits $longLived = new LongLivedLimits(),
        public readonly HeaderLimits $header = new HeaderLimits(),
        public readonly BodyLimits $body = new BodyLimits(),
        public readonly Keepalive $keepalive = new Keepalive(),
    ) {
        PositiveLimits::check('', $this);
        if ($clientShare > 1.0) {
            throw new \ValueError('The limit clientShare must be at most 1, got ' . Number::text($clientShare));
        }
    }

    /**
     * @internal the limits for the extension
     *
     * @return array<string, int|float|null>
     */
    public function native(): array
    {
        return [
            'connections' => $this->connections,
            'inFlight' => $this->inFlight,
            'queue' => $this->queue,
            'clientShare' => $this->clientShare,
            'deadline' => $this->deadline,
            'writeTimeout' => $this->writeTimeout,
            'longLived' => $this->longLived->total,
            'longLivedPerConnection' => $this->longLived->perConnection,
            'headerCount' => $this->header->count,
            'headerBytes' => $this->header->bytes,
            'headerTimeout' => $this->header->timeout,
            'bodyBytes' => $this->body->bytes,
            'bodyTimeout' => $this->body->timeout,
            'minBodyRate' => $this->body->minRate,
            'streamWindow' => $this->body->window,
            'idleTimeout' => $this->keepalive->idle,
            'maxAge' => $this->keepalive->maxAge,
            'ageGrace' => $this->keepalive->ageGrace,
            'pingInterval' => $this->keepalive->pingInterval,
            'pingTimeout' => $this->keepalive->pingTimeout,
            'minPingInterval' => $this->keepalive->minPingInterval,
        ];
    }
}
