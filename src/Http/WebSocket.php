<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Native\HttpSocket;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * A WebSocket connection with one client. Any number of tasks may send; each message is received by one task.
 *
 * `foreach ($socket as $message)` ends when the WebSocket is closed. The server sends and answers pings itself.
 *
 * ```
 * $routes->websocket('/echo', function (WebSocket $socket): void {
 *     foreach ($socket as $message) {
 *         $socket->send($message->data);
 *     }
 * });
 * ```
 *
 * @implements \IteratorAggregate<int, WebSocketMessage>
 */
final class WebSocket implements \IteratorAggregate
{
    /** The task of the handler. Others may receive and send as well. */
    private readonly ?Coroutine $handler;
    /** Whether the handler waits in `receive()` or `send()`, which tell it the end. */
    private bool $isHandlerHere = false;
    /** Whether the handler has closed the WebSocket or learnt of its end. */
    private bool $isEndKnown = false;
    /** Nanoseconds of the monotonic clock when a task has received last, or has sent after that; null before the first `receive()`. */
    private ?int $usedAt = null;

    /**
     * @internal
     *
     * @param string|null $subprotocol the negotiated subprotocol
     */
    public function __construct(private readonly HttpSocket $native, public readonly ?string $subprotocol)
    {
        $this->handler = Scheduler::task();
    }

    /** Waits for the next message. Null once the WebSocket is closed, see `closeCode()`. */
    #[WaitsFor('a message of a WebSocket')]
    public function receive(): ?WebSocketMessage
    {
        $isHandler = Scheduler::task() === $this->handler;
        $this->isHandlerHere = $this->isHandlerHere || $isHandler;
        try {
            /** @var array{string, bool}|null $message */
            $message = Scheduler::await($this->native->receive());
        } finally {
            $this->isHandlerHere = $this->isHandlerHere && !$isHandler;
        }
        $this->usedAt = \hrtime(true);
        if ($message === null) {
            $this->isEndKnown = $this->isEndKnown || $isHandler;

            return null;
        }

        return new WebSocketMessage($message[0], $message[1]);
    }

    public function getIterator(): \Generator
    {
        while (($message = $this->receive()) !== null) {
            yield $message;
        }
    }

    /**
     * Sends UTF-8 text. Waits while more than 64 KiB are buffered for the client.
     *
     * @throws ClientDisconnectedException the WebSocket is closed
     * @throws \Error it is not UTF-8
     */
    public function send(string $text): void
    {
        $this->pass($text, false);
    }

    /**
     * Sends bytes. Waits while more than 64 KiB are buffered for the client.
     *
     * @throws ClientDisconnectedException the WebSocket is closed
     */
    public function sendBinary(string $bytes): void
    {
        $this->pass($bytes, true);
    }

    /**
     * Sends the buffered messages and a close frame, without waiting. No more messages are received. Further calls have no
     * effect.
     *
     * @param int $code 1000 to 1014 without 1004, 1005 and 1006 (RFC 6455 §7.4.1), or 3000 to 4999
     * @param string $reason UTF-8, 123 bytes at most
     *
     * @throws \ValueError
     */
    public function close(int $code = 1000, string $reason = ''): void
    {
        $isRegistered = $code >= 1000 && $code <= 1014 && ($code < 1004 || $code > 1006);
        if (!$isRegistered && ($code < 3000 || $code > 4999)) {
            throw new \ValueError("Invalid close code of a WebSocket: $code: it is 1000 to 1014 without 1004, 1005 and 1006, or 3000 to 4999");
        }
        if (\strlen($reason) > 123 || \preg_match('//u', $reason) !== 1) {
            throw new \ValueError('The close reason of a WebSocket must be UTF-8 of at most 123 bytes, got ' . \strlen($reason) . ' bytes');
        }
        $this->isEndKnown = true;
        $this->native->close($code, $reason);
    }

    /**
     * The close code, null while the WebSocket is open: the code of the client or the server, 1005 if the client has sent none, 1006 if
     * the connection was lost.
     */
    public function closeCode(): ?int
    {
        return $this->native->closeCode();
    }

    public function closeReason(): string
    {
        return $this->native->closeReason();
    }

    #[WaitsFor('a WebSocket client to read its messages')]
    private function pass(string $message, bool $isBinary): void
    {
        $this->usedAt = $this->usedAt === null ? null : \hrtime(true);
        $isHandler = Scheduler::task() === $this->handler;
        try {
            $op = $this->native->send($message, $isBinary);
            if ($op !== 0) {
                $this->isHandlerHere = $this->isHandlerHere || $isHandler;
                Scheduler::await($op);
            }
        } catch (ClientDisconnectedException $error) {
            $this->isEndKnown = $this->isEndKnown || $isHandler;
            throw $error;
        } finally {
            $this->isHandlerHere = $this->isHandlerHere && !$isHandler;
        }
    }

    /**
     * Whether it is closed and the handler waits for something that does not tell it so.
     *
     * @internal
     *
     * @param float $grace seconds for the work of the last message, if one was received
     */
    public function isLeft(float $grace): bool
    {
        return !$this->isHandlerHere && !$this->isEndKnown && $this->native->closeCode() !== null
            && ($this->usedAt === null || (\hrtime(true) - $this->usedAt) / 1e9 >= $grace);
    }
}
