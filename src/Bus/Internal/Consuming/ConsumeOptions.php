<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\CircuitBreaker;
use Weft\Bus\Internal\Flow\AdaptiveLimit;

/**
 * The options of one `Bus::consume()` call.
 *
 * @internal
 */
final class ConsumeOptions
{
    /** @var positive-int */
    public readonly int $prefetch;

    /**
     * @param int|null $concurrency   handlers running at once; null for as many as do not make each other slower
     * @param int|null $prefetch      deliveries not acknowledged; null for twice the concurrency
     * @param bool     $stopWhenEmpty whether to return once the queue is empty and nothing is in flight
     * @param int|null $limit         return once this many messages have been handled
     * @param bool     $signals       whether SIGTERM and SIGINT stop it
     * @param float|null $grace       seconds that what is in flight may take after a stop; null for as long as it takes
     *
     * @throws \ValueError when a number is below 1, or the grace below 0
     */
    public function __construct(
        public readonly ?int $concurrency,
        ?int $prefetch,
        public readonly bool $stopWhenEmpty,
        public readonly ?int $limit,
        public readonly bool $signals,
        public readonly ?CircuitBreaker $breaker = null,
        public readonly ?float $grace = null,
    ) {
        self::vetGrace($grace);
        $prefetch ??= 2 * ($concurrency ?? AdaptiveLimit::MOST);
        if (($concurrency ?? 1) < 1 || $prefetch < 1 || ($limit ?? 1) < 1) {
            throw new \ValueError('concurrency, prefetch and limit must be at least 1, got ' . ($concurrency ?? 'none') . ", {$prefetch}" . ($limit === null ? '' : " and {$limit}"));
        }
        $this->prefetch = $prefetch;
    }
    /** @throws \ValueError when it is below 0 */
    public static function vetGrace(?float $grace): void
    {
        if ($grace !== null && (\is_nan($grace) || $grace < 0.0)) {
            throw new \ValueError("The grace of a stop must be at least 0 seconds, got {$grace}");
        }
    }
}
