<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\PublishException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;

/** A transport that tells what is asked of it before it does it, and fails where it is told to. */
final class SpyTransport implements Transport
{
    /** @var (\Closure(string $what, list<Transport\Outgoing> $messages): void)|null */
    public ?\Closure $before = null;

    /** @var list<int> of each consumer */
    public array $prefetches = [];

    /** How many times parking fails. */
    public int $deadLetteringFails = 0;

    /** Whether acknowledgements get lost on their way. */
    public bool $loseAcks = false;

    public function __construct(private readonly Transport $inner) {}

    public function declare(string $queue, array $types): void
    {
        $this->inner->declare($queue, $types);
    }

    public function publish(iterable $messages, bool $confirmed = true): void
    {
        $messages = \is_array($messages) ? $messages : \iterator_to_array($messages, false);
        $this->tell($confirmed ? 'publish' : 'publish unconfirmed', $messages);
        $this->inner->publish($messages, $confirmed);
    }

    public function consume(string $queue, int $prefetch): Consumer
    {
        $this->prefetches[] = $prefetch;

        return new class ($this, $this->inner->consume($queue, $prefetch)) implements Consumer {
            public function __construct(private readonly SpyTransport $spy, private readonly Consumer $inner) {}

            public function next(int $max, ?float $wait = null): array
            {
                return $this->inner->next($max, $wait);
            }

            public function ack(Delivery $delivery, array $publish = []): void
            {
                $this->spy->tell('ack', $publish);
                if ($this->spy->loseAcks) {
                    return;
                }
                $this->inner->ack($delivery, $publish);
            }

            public function requeue(Delivery $delivery): void
            {
                $this->spy->tell('requeue', []);
                $this->inner->requeue($delivery);
            }

            public function deadLetter(Delivery $delivery, array $headers): void
            {
                if ($this->spy->deadLetteringFails-- > 0) {
                    throw new PublishException('the broker was removed');
                }
                $this->inner->deadLetter($delivery, $headers);
            }

            public function stop(): void
            {
                $this->inner->stop();
            }

            public function close(): void
            {
                $this->inner->close();
            }
        };
    }

    public function put(string $queue, array $messages): void
    {
        $this->tell("put into {$queue}", $messages);
        $this->inner->put($queue, $messages);
    }

    public function depth(string $queue): int
    {
        return $this->inner->depth($queue);
    }

    public function isConsumed(string $queue): bool
    {
        return $this->inner->isConsumed($queue);
    }

    public function delete(string $queue): void
    {
        $this->inner->delete($queue);
    }

    public function close(): void
    {
        $this->inner->close();
    }

    public function tell(string $what, array $messages): void
    {
        if ($this->before !== null) {
            ($this->before)($what, $messages);
        }
    }
}
