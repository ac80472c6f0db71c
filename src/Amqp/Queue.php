<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** A queue to be declared. */
final class Queue
{
    /**
     * @param non-empty-string $name at most 255 bytes; `amq.` is reserved for the broker
     * @param bool $durable survives a restart of the broker, and so do the persistent messages in it
     * @param bool $exclusive belongs to this connection and disappears with it
     * @param bool $autoDelete disappears with its last consumer
     * @param bool $passive only check that it exists; never created
     * @param array<string, mixed> $arguments such as `x-queue-type`, `x-max-length`, `x-dead-letter-exchange`
     *
     * @throws \ValueError the name is empty
     */
    public function __construct(
        public readonly string $name,
        public readonly bool $durable = true,
        public readonly bool $exclusive = false,
        public readonly bool $autoDelete = false,
        public readonly bool $passive = false,
        public readonly array $arguments = [],
    ) {
        if ($name === '') {
            throw new \ValueError('A queue needs a name: a name chosen by the broker would change with each reconnect');
        }
    }
}
