<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** A message as a {@see Consumer} received it. Settle it there: ack, nack or reject. */
final class Delivery
{
    public readonly string $body;

    /** @var array<string, mixed> */
    public readonly array $headers;

    /**
     * @internal made by a {@see Consumer}
     *
     * @param int $tag names it to its consumer; another one after a redelivery
     * @param bool $redelivered whether it was delivered before, to any consumer
     * @param Message $message all properties; `$body` and `$headers` are its
     * @param ?string $userId the sender as the broker has verified it, if the sender said so
     * @param ?string $malformed why properties and headers could not be read; then they are empty
     */
    public function __construct(
        public readonly int $tag,
        public readonly bool $redelivered,
        public readonly string $exchange,
        public readonly string $routingKey,
        public readonly Message $message,
        public readonly ?string $userId,
        public readonly ?string $malformed,
    ) {
        $this->body = $message->body;
        $this->headers = $message->headers;
    }
}
