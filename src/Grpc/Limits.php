<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Http\Internal\PositiveLimits;
use Weft\Internal\Number;

/**
 * Limits of a gRPC server: how much it does at a time, and groups for everything else. `Weft\Http\Limits` has those of connections.
 *
 * Unary calls, streaming calls and health watches have separate limits, so that long calls do not block short ones. Each call in
 * progress takes a fiber and counts until its handler has ended, even if its client has disconnected. If the servers of a process together
 * allow more handlers than `maxFibers` of `Weft\run()`, each gets a proportional share; of the share of gRPC half is for unary calls, a
 * quarter for streams and a quarter for watches. The shares are known once {@see Server::run()} is called: watches that have arrived before
 * and are more than the share wait for a place instead of being refused.
 */
final class Limits
{
    /**
     * @param int $inFlight concurrent unary calls, at least 1; further calls wait in the queue. Lower it where a call needs much memory
     * @param int $queue waiting calls, at least 1, including those whose request is still arriving; further calls end with Unavailable. Lower it where
     *     clients give up soon
     * @param float $clientShare the share of `inFlight`, streams, watches and `queue` for one client address (for IPv6 a /64 network),
     *     above 0 and at most 1. Calls beyond the share of `inFlight` and of streams wait, those beyond the share of `queue` and of watches
     *     end with ResourceExhausted. Set 1.0 behind a proxy, which is one address. Clients of a Unix socket have no limit
     * @param array<string, MethodLimits> $methods by full name, `api.Users` for a service or `api.Users/Get` for a method; limits of a
     *     method take precedence. Set them for methods that are slower or larger than the others
     * @param MessageLimits $messages size and time of messages
     * @param StreamLimits $streams streaming calls and health watches
     *
     * @throws \ValueError for a value that is not greater than 0, or a client share above 1
     */
    public function __construct(
        public readonly int $inFlight = 1_000,
        public readonly int $queue = 10_000,
        public readonly float $clientShare = 0.5,
        public readonly array $methods = [],
        public readonly MessageLimits $messages = new MessageLimits(),
        public readonly StreamLimits $streams = new StreamLimits(),
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
            'inFlight' => $this->inFlight,
            'queue' => $this->queue,
            'clientShare' => $this->clientShare,
            'messageBytes' => $this->messages->bytes,
            'metadataBytes' => $this->messages->metadataBytes,
            'bufferedBytes' => $this->messages->bufferedBytes,
            'requestTimeout' => $this->messages->requestTimeout,
            'writeTimeout' => $this->messages->writeTimeout,
            'streams' => $this->streams->streams,
            'streamsPerConnection' => $this->streams->streamsPerConnection,
            'watches' => $this->streams->watches,
            'watchesPerConnection' => $this->streams->watchesPerConnection,
        ];
    }
}
