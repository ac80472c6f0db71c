<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Persistence\BlockedKeys;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;

/**
 * Settles messages that have waited in the database for their key.
 *
 * @internal
 */
final class BlockedMessageConsumer implements Consumer
{
    public function __construct(
        private readonly BlockedKeys $keys,
        private readonly Transport $transport,
        private readonly string $queue,
    ) {}

    public function next(int $max, ?float $wait = null): array
    {
        // OrderedProcessor hands them out by key.
        return [];
    }

    public function ack(Delivery $delivery, array $publish = []): void
    {
        if ($publish !== []) {
            $this->transport->publish($publish);
        }
        $this->keys->remove($delivery);
    }

    public function requeue(Delivery $delivery): void
    {
        // It is still in the table.
    }

    public function deadLetter(Delivery $delivery, array $headers): void
    {
        $this->transport->put(DeadLetters::queueOf($this->queue), [new Outgoing($delivery->type, $delivery->body, $headers)]);
        $this->keys->remove($delivery);
    }

    public function stop(): void {}

    public function close(): void {}
}
