<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Batch;

use Weft\Bus\BatchItem;
use Weft\Bus\Internal\Sending\HandlerOutbox;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;

/**
 * One call of a batch handler: its items, their outboxes, and their outcome.
 *
 * @internal
 */
final class BatchCall
{
    /** @var array<int, BatchItem> by the key of the delivery */
    public array $items = [];

    /** @var array<int, HandlerOutbox> */
    public array $outboxes = [];

    /**
     * @param non-empty-list<Delivery> $deliveries
     * @param HandlerOutbox                   $common what the handler sends through the bus and no item's context
     */
    public function __construct(
        public readonly array $deliveries,
        public readonly HandlerOutbox $common,
    ) {}

    /** @return list<Delivery> those that the handler did not fail */
    public function handled(): array
    {
        return \array_values(\array_filter($this->deliveries, fn(int $key): bool => $this->items[$key]->failure() === null, \ARRAY_FILTER_USE_KEY));
    }

    /** @return array<int, \Throwable> by the key of the delivery */
    public function failures(): array
    {
        return \array_filter(\array_map(static fn(BatchItem $item): ?\Throwable => $item->failure(), $this->items));
    }

    /** @return list<Outgoing> what the handled items have sent; from now on nothing more is taken */
    public function close(): array
    {
        $sent = $this->common->close();
        foreach ($this->outboxes as $key => $outbox) {
            $kept = $outbox->close();
            if ($kept !== [] && $this->items[$key]->failure() === null) {
                \array_push($sent, ...$kept);
            }
        }

        return $sent;
    }

    /** @return list<array{Outgoing, float}> messages that are to leave later, and when */
    public function delayed(): array
    {
        $later = $this->common->delayed();
        foreach ($this->outboxes as $key => $outbox) {
            if ($outbox->delayed() !== [] && $this->items[$key]->failure() === null) {
                \array_push($later, ...$outbox->delayed());
            }
        }

        return $later;
    }
}
