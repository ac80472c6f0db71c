<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** Routes messages of an exchange to a queue or to another exchange. */
final class Binding
{
    /**
     * @param string $exchange where the messages come from
     * @param string $destination the queue, or the exchange if `$toExchange`
     * @param string $routingKey interpreted by the exchange according to its kind; at most 255 bytes
     * @param array<string, mixed> $arguments what an exchange of kind headers compares
     */
    private function __construct(
        public readonly string $exchange,
        public readonly string $destination,
        public readonly string $routingKey,
        public readonly array $arguments,
        public readonly bool $toExchange,
    ) {}

    /** @param array<string, mixed> $arguments */
    public static function queue(string $exchange, string $queue, string $routingKey = '', array $arguments = []): self
    {
        return new self($exchange, $queue, $routingKey, $arguments, false);
    }

    /** @param array<string, mixed> $arguments */
    public static function exchange(string $exchange, string $to, string $routingKey = '', array $arguments = []): self
    {
        return new self($exchange, $to, $routingKey, $arguments, true);
    }
}
