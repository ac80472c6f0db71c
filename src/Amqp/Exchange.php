<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** An exchange to be declared. */
final class Exchange
{
    public readonly string $kind;

    /**
     * @param string $name at most 255 bytes; `amq.` is reserved for the broker
     * @param ExchangeKind|string $kind a string for a plugin's, such as `x-delayed-message`
     * @param bool $durable survives a restart of the broker
     * @param bool $autoDelete disappears with its last binding
     * @param bool $internal takes messages from other exchanges only
     * @param bool $passive only check that it exists; never created
     * @param array<string, mixed> $arguments such as `alternate-exchange`
     */
    public function __construct(
        public readonly string $name,
        ExchangeKind|string $kind = ExchangeKind::Direct,
        public readonly bool $durable = true,
        public readonly bool $autoDelete = false,
        public readonly bool $internal = false,
        public readonly bool $passive = false,
        public readonly array $arguments = [],
    ) {
        $this->kind = $kind instanceof ExchangeKind ? $kind->value : $kind;
    }
}
