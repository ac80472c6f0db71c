<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * How one queue is consumed, as `Bus::consume()` was told.
 *
 * @internal
 */
final class Consumption
{
    public readonly int $prefetch;

    /**
     * @param int      $concurrency   handlers running at once
     * @param int|null $prefetch      deliveries not acknowledged; null for twice the concurrency
     * @param bool     $stopWhenEmpty whether to return once the queue is empty and nothing is in flight
     * @param int|null $limit         return once this many messages have been handled
     * @param bool     $signals       whether SIGTERM and SIGINT stop it
     *
     * @throws \ValueError when a number is below 1
     */
    public function __construct(
        public readonly int $concurrency,
        ?int $prefetch,
        public readonly bool $stopWhenEmpty,
        public readonly ?int $limit,
        public readonly bool $signals,
    ) {
        $this->prefetch = $prefetch ?? 2 * $concurrency;
        if ($concurrency < 1 || $this->prefetch < 1 || ($limit ?? 1) < 1) {
            throw new \ValueError("concurrency, prefetch and limit must be at least 1, got {$concurrency}, {$this->prefetch}" . ($limit === null ? '' : " and {$limit}"));
        }
    }
}
