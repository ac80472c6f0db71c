<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Batch;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Handlers\Handlers;
use Weft\Bus\Transport\Delivery;

/**
 * Collects deliveries of the same type for one call of their batch handler.
 *
 * @internal
 */
final class BatchCollector
{
    /** @var array<string, non-empty-list<Delivery>> by type */
    private array $waiting = [];

    /** @var array<string, float> when the window of each type is over, as {@see Clock::monotonic()} has it */
    private array $due = [];

    public function __construct(private readonly Handlers $handlers) {}

    /** The batch handler of a delivery; null if it is handled alone. */
    public function handler(Delivery $delivery): ?Handler
    {
        $handler = $this->handlers->of($delivery->type)[0] ?? null;

        return $handler?->attributes->batch === null ? null : $handler;
    }

    /** @return list<Delivery> the batch that is full with it; empty as long as it waits */
    public function add(Handler $handler, Delivery $delivery): array
    {
        \assert($handler->attributes->batch !== null);
        $this->due[$delivery->type] ??= Clock::monotonic() + $handler->attributes->batch->window;
        $this->waiting[$delivery->type][] = $delivery;

        return \count($this->waiting[$delivery->type]) >= $handler->attributes->batch->size ? $this->take($delivery->type) : [];
    }

    /** When the first window ends; null when no delivery is waiting. */
    public function due(): ?float
    {
        return $this->due === [] ? null : \min($this->due);
    }

    /** @return list<non-empty-list<Delivery>> those that wait no longer */
    public function ripe(bool $all): array
    {
        $now = Clock::monotonic();
        $ripe = [];
        foreach ($this->due as $type => $due) {
            if ($all || $due <= $now) {
                $ripe[] = $this->take((string) $type);
            }
        }

        return $ripe;
    }

    public function count(): int
    {
        return \array_sum(\array_map('count', $this->waiting));
    }

    /** @return non-empty-list<Delivery> */
    private function take(string $type): array
    {
        $batch = $this->waiting[$type];
        unset($this->waiting[$type], $this->due[$type]);

        return $batch;
    }
}
