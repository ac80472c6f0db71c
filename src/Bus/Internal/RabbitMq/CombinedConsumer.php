<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Consuming\RemoteConsumer;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport\Delivery;

/**
 * Several consumers of one queue, used as one: AMQP limits the prefetch of each to 65,535. Messages do not arrive in queue order.
 *
 * @internal
 */
final class CombinedConsumer implements RemoteConsumer
{
    private bool $stopped = false;

    /** The consumer whose messages are taken first next time. */
    private int $first = 0;

    /**
     * @param non-empty-list<RabbitMqConsumer> $consumers
     * @param Wakeup                           $arrival   of messages for any of them
     */
    public function __construct(
        private readonly array $consumers,
        private readonly Wakeup $arrival,
    ) {}

    public function next(int $max, ?float $wait = null): array
    {
        $until = $wait === null ? null : Clock::monotonic() + $wait;
        while (!$this->stopped) {
            $generation = $this->arrival->generation;
            $deliveries = $this->take($max);
            if ($deliveries !== []) {
                return $deliveries;
            }
            if (!$this->arrival->wait($until, $generation)) {
                break;
            }
        }

        return [];
    }

    public function catchUp(): void
    {
        foreach ($this->consumers as $consumer) {
            $consumer->catchUp();
        }
    }

    public function keepOrder(): void
    {
        foreach ($this->consumers as $consumer) {
            $consumer->keepOrder();
        }
    }

    public function ack(Delivery $delivery, array $publish = []): void
    {
        $this->of($delivery)->ack($this->own($delivery), $publish);
    }

    public function requeue(Delivery $delivery): void
    {
        $this->of($delivery)->requeue($this->own($delivery));
    }

    public function deadLetter(Delivery $delivery, array $headers): void
    {
        $this->of($delivery)->deadLetter($this->own($delivery), $headers);
    }

    public function stop(): void
    {
        $this->stopped = true;
        foreach ($this->consumers as $consumer) {
            $consumer->stop();
        }
    }

    public function close(): void
    {
        $this->stopped = true;
        foreach ($this->consumers as $consumer) {
            $consumer->close();
        }
    }

    /** @return list<Delivery> */
    private function take(int $max): array
    {
        $count = \count($this->consumers);
        $deliveries = [];
        for ($turn = 0; $turn < $count && ($room = $max - \count($deliveries)) > 0; $turn++) {
            $index = ($this->first + $turn) % $count;
            foreach ($this->consumers[$index]->next($room, 0.0) as $delivery) {
                // Tags are unique per channel only.
                $deliveries[] = $delivery->tagged($delivery->tag * $count + $index);
            }
        }
        $this->first = ($this->first + 1) % $count;

        return $deliveries;
    }

    private function of(Delivery $delivery): RabbitMqConsumer
    {
        return $this->consumers[$delivery->tag % \count($this->consumers)];
    }

    private function own(Delivery $delivery): Delivery
    {
        return $delivery->tagged(\intdiv($delivery->tag, \count($this->consumers)));
    }
}
