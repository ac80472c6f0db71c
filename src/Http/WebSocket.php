<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Native\HttpSocket;
use Weft\Runtime\Internal\Scheduler;

/**
 * A conversation with one client. Any number of tasks may send; a message is received by one.
 *
 * `foreach ($socket as $message)` ends when the conversation does. Pings are answered, and sent, by themselves.
 *
 * @implements \IteratorAggregate<int, WebSocketMessage>
 */
final class WebSocket implements \IteratorAggregate
{
    /**
     * @internal
     *
     * @param string|null $subprotocol what was agreed on
     */
    public function __construct(private readonly HttpSocket $native, public readonly ?string $subprotocol)
    {
    }

    /** Waits for the next message; null once the conversation has ended, see `closeCode()`. */
    public function receive(): ?WebSocketMessage
    {
        /** @var array{string, bool}|null $message */
        $message = Scheduler::await($this->native->receive());

        return $message === null ? null : new WebSocketMessage($message[0], $message[1]);
    }

    public function getIterator(): \Generator
    {
        while (($message = $this->receive()) !== null) {
            yield $message;
        }
    }

    /**
     * Sends UTF-8 text. Waits while more than 64 KiB wait for the client.
     *
     * @throws ClientDisconnectedException the conversation has ended
     * @throws \Error it is not UTF-8
     */
    public function send(string $text): void
    {
        $this->pass($text, false);
    }

    /**
     * Sends bytes. Waits while more than 64 KiB wait for the client.
     *
     * @throws ClientDisconnectedException the conversation has ended
     */
    public function sendBinary(string $bytes): void
    {
        $this->pass($bytes, true);
    }

    /**
     * Sends what is waiting, then that the conversation ends, and does not wait. Nothing is received any more. Only the first
     * time counts.
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
            throw new \ValueError("A WebSocket cannot be closed with the code $code: it is 1000 to 1014 without 1004, 1005 and 1006, or 3000 to 4999");
        }
        if (\strlen($reason) > 123 || \preg_match('//u', $reason) !== 1) {
            throw new \ValueError('The reason a WebSocket is closed for is UTF-8 of 123 bytes at most, got ' . \strlen($reason) . ' bytes');
        }
        $this->native->close($code, $reason);
    }

    /**
     * Why the conversation has ended, null while it goes on: the client's code or ours, 1005 where the client gave none, 1006
     * where the connection was lost.
     */
    public function closeCode(): ?int
    {
        return $this->native->closeCode();
    }

    public function closeReason(): string
    {
        return $this->native->closeReason();
    }

    private function pass(string $message, bool $isBinary): void
    {
        $op = $this->native->send($message, $isBinary);
        if ($op !== 0) {
            Scheduler::await($op);
        }
    }
}
