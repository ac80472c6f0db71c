<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Internal\Number;

/**
 * The clients that may open a WebSocket of {@see Router::websocket()}, and the limits of its messages.
 *
 * ```
 * $routes->websocket('/chat', $chat, new WebSocketOptions(origins: ['https://app.example.org']));
 * ```
 */
final class WebSocketOptions
{
    /**
     * @param list<string> $subprotocols the server selects the first one that the client offers. Set them where clients of several versions
     *     connect
     * @param list<string>|null $origins origins that may connect (`https://app.example.org`), `*` allows any; null allows the scheme and host of
     *     the request (behind a proxy that terminates TLS, those of {@see TrustedProxies}). Requests without an Origin, which browsers never
     *     send, are allowed. Set them where pages of another host connect
     * @param int $messageBytes bytes of a message from the client, at least 1; a longer one closes the WebSocket with 1009. Raise it for files,
     *     lower it for many clients: as much is buffered for each
     * @param float $pingInterval seconds between pings, at least 0; 0 disables them. A client that has sent nothing by the next ping is
     *     disconnected. Lower it below the idle timeout of a proxy in front
     * @param bool $compress compresses messages of 256 bytes or more if the client supports it (RFC 7692); `$messageBytes` also limits the
     *     decompressed size. Set it where bandwidth costs more than CPU and messages hold no secrets
     * @param float $grace seconds for which a handler that has received messages may go on without `receive()` and `send()` once the WebSocket is
     *     closed, at least 0; then it is cancelled. Raise it where the work of one message takes longer
     *
     * @throws \ValueError for a number out of its bounds
     */
    public function __construct(
        public readonly array $subprotocols = [],
        public readonly ?array $origins = null,
        public readonly int $messageBytes = 1 << 20,
        public readonly float $pingInterval = 30.0,
        public readonly bool $compress = false,
        public readonly float $grace = 30.0,
    ) {
        if ($messageBytes < 1 || !($pingInterval >= 0.0)) {
            throw new \ValueError("messageBytes must be at least 1 and pingInterval at least 0 seconds, got $messageBytes and " . Number::text($pingInterval));
        }
        if (!($grace >= 0.0)) {
            throw new \ValueError('The grace of a WebSocket must be at least 0 seconds, got ' . Number::text($grace));
        }
    }
}
