<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Sending\MessageHeaders;

/**
 * Sends a message class through a foreign exchange of RabbitMQ instead of the bus's own. Set it on the class, or
 * with {@see MessageOptions::$routes}.
 *
 * The bus never declares this exchange or binds queues to it. Publishing to one that does not exist throws {@see PublishException}, which
 * names it. The AMQP property `type` is the type name of the message, and a command has the header {@see Header::KIND}. Other transports
 * ignore it.
 *
 * ```php
 * #[Route('shop.events', key: 'order.placed')]
 * #[SerializedBy(new CloudEvents('/shop'))]
 * final class OrderPlaced
 * ```
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Route
{
    /**
     * @param string                               $exchange 0 to 127 bytes; empty for the default exchange, whose routing key is the name
     *                                                       of a queue
     * @param string|(\Closure(object): string)|null $key    routing key, at most 255 bytes, or what makes it of the message; null for the
     *                                                       type name
     * @param array<string, string>                $headers  added to each message; not those that RabbitMQ interprets: `CC`, `BCC`,
     *                                                       `x-death` and the like
     *
     * @throws \ValueError when the name of the exchange is too long, or RabbitMQ interprets a header
     */
    public function __construct(
        public readonly string $exchange,
        public readonly string|\Closure|null $key = null,
        public readonly array $headers = [],
    ) {
        if (\strlen($exchange) > 127) {
            throw new \ValueError("The name of an exchange must have at most 127 bytes, \"{$exchange}\" has " . \strlen($exchange));
        }
        MessageHeaders::checkNames($headers);
    }

    /** @internal */
    public function keyOf(object $message, string $type): string
    {
        $key = $this->key instanceof \Closure ? ($this->key)($message) : $this->key ?? $type;

        return \strlen($key) <= 255 ? $key : throw new \ValueError('A routing key must have at most 255 bytes, that of ' . $message::class . ' has ' . \strlen($key));
    }
}
