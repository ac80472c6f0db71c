<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Internal\Number;

/** Options of {@see Http2Channel::connect()}. */
final class ChannelOptions
{
    /**
     * @param float|null $timeout seconds, at least 0, for calls without a timeout of their own; null is unlimited. Set it, so that a server that does
     *     not answer cannot block a task
     * @param ServiceConfig $config load balancing, retries and timeouts of methods
     * @param Compression|null $compression of sent messages; received messages may use any. Set it for large messages over slow networks
     * @param int $messageBytes the limit of a received message in bytes, at least 1, compressed or not; a larger one ends the call with
     *     ResourceExhausted. Raise it where a server sends larger messages
     * @param int $streamWindow the flow control window of a stream in bytes, 65535 to 2147483647: it limits a stream to that many
     *     bytes per round trip. Raise it for large responses over long distances
     * @param float $connectTimeout seconds, above 0, for one attempt to connect to one server. Lower it where another server should be tried sooner
     * @param Keepalive|null $keepalive pings during calls; null disables them. Set it for long streams through proxies
     *
     * @throws \ValueError for a value out of its bounds
     */
    public function __construct(
        public readonly ?float $timeout = null,
        public readonly ServiceConfig $config = new ServiceConfig(),
        public readonly ?Compression $compression = null,
        public readonly int $messageBytes = 4_194_304,
        public readonly int $streamWindow = 262_144,
        public readonly float $connectTimeout = 20.0,
        public readonly ?Keepalive $keepalive = null,
    ) {
        if ($timeout !== null && !($timeout >= 0)) {
            throw new \ValueError('timeout must be at least 0, got ' . Number::text($timeout));
        }
        if ($streamWindow < 65_535 || $streamWindow > 0x7fff_ffff) {
            throw new \ValueError("streamWindow must be from 65535 to 2147483647, got $streamWindow");
        }
        foreach (['connectTimeout' => $connectTimeout, 'messageBytes' => $messageBytes] as $name => $value) {
            if (!($value > 0)) {
                throw new \ValueError("$name must be greater than 0, got " . Number::text($value));
            }
        }
    }

    /**
     * @internal as the extension takes it
     *
     * @return array<string, int|float|string|null>
     */
    public function native(): array
    {
        return [
            'connectTimeout' => $this->connectTimeout,
            'messageBytes' => $this->messageBytes,
            'pingInterval' => $this->keepalive?->interval,
            'pingTimeout' => $this->keepalive?->timeout,
            'encoding' => $this->compression?->value,
            'streamWindow' => $this->streamWindow,
        ];
    }
}
