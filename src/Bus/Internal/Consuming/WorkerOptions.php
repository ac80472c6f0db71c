<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\CircuitBreaker;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Internal\Flow\AdaptiveLimit;

/**
 * The options of one `Bus::consume()` call, with the defaults resolved.
 *
 * @internal
 */
final class WorkerOptions
{
    /**
     * @param positive-int|null $concurrency handlers that run at the same time; null adapts the number
     * @param positive-int      $prefetch    unacknowledged deliveries
     * @param positive-int|null $limit       messages after which the worker stops
     * @param float|null        $grace       seconds that handlers in flight may run after a stop; null for no limit
     * @param float|null        $stopAfter   seconds after which the worker stops; null for no limit
     */
    private function __construct(
        public readonly ?int $concurrency,
        public readonly int $prefetch,
        public readonly bool $stopWhenEmpty,
        public readonly ?int $limit,
        public readonly bool $signals,
        public readonly ?CircuitBreaker $breaker,
        public readonly ?float $grace,
        public readonly ?float $stopAfter,
    ) {}

    /** The same options for what is left after so many messages and seconds; null when nothing is. */
    public function after(int $handled, float $seconds): ?self
    {
        $limit = $this->limit === null ? null : $this->limit - $handled;
        $stopAfter = $this->stopAfter === null ? null : $this->stopAfter - $seconds;
        if (($limit !== null && $limit < 1) || ($stopAfter !== null && $stopAfter <= 0.0)) {
            return null;
        }

        return new self($this->concurrency, $this->prefetch, $this->stopWhenEmpty, $limit, $this->signals, $this->breaker, $this->grace, $stopAfter);
    }

    /** @throws \ValueError when the concurrency is below 1 or above its maximum */
    public static function of(?int $concurrency, ConsumeOptions $options): self
    {
        if ($concurrency !== null && ($concurrency < 1 || $concurrency > ConsumeOptions::MAX_CONCURRENCY)) {
            throw new \ValueError('The concurrency of a consumer must be at least 1 and at most ' . ConsumeOptions::MAX_CONCURRENCY . ", got {$concurrency}");
        }
        $prefetch = $options->prefetch ?? \min(2 * ($concurrency ?? AdaptiveLimit::MAX_LIMIT), ConsumeOptions::MAX_PREFETCH);

        return new self($concurrency, $prefetch, $options->stopWhenEmpty, $options->limit, $options->signals, $options->breaker, $options->grace, $options->stopAfter);
    }
}
