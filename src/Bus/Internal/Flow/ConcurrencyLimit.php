<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

/**
 * Counts running handlers and decides whether another one may start.
 *
 * @internal
 */
final class ConcurrencyLimit
{
    /** @var array<int, int> when handlers were started, in nanoseconds where that is measured, by delivery tag */
    private array $taken = [];

    /** Null for a fixed concurrency. */
    private readonly ?AdaptiveLimit $gradient;

    /**
     * @param int|null     $concurrency null for as many as do not make each other slower
     * @param BreakerState|null $breaker     what says that none may start for a while
     */
    public function __construct(
        private readonly ?int $concurrency,
        public readonly ?BreakerState $breaker,
    ) {
        $this->gradient = $concurrency === null ? new AdaptiveLimit(\hrtime(true) / 1e9) : null;
    }

    /** How many handlers may run at the same time. */
    public function limit(): int
    {
        return $this->concurrency ?? $this->gradient->limit ?? 0;
    }

    public function hasCapacity(): bool
    {
        // As limit() has it, without the call: this is asked for each message.
        return \count($this->taken) < ($this->concurrency ?? $this->gradient->limit ?? 0) && ($this->breaker === null || !$this->breaker->isOpen());
    }

    /** Seconds until there may be capacity without a handler having ended; null when there is no such time. */
    public function retryAfter(): ?float
    {
        return $this->breaker?->retryAfter();
    }

    public function acquire(int $tag): void
    {
        $this->taken[$tag] = $this->gradient === null ? 0 : \hrtime(true);
        $this->breaker?->started($tag);
    }

    public function holds(int $tag): bool
    {
        return isset($this->taken[$tag]);
    }

    /** @return bool false when it was free already */
    public function release(int $tag): bool
    {
        if (!isset($this->taken[$tag])) {
            return false;
        }
        if ($this->gradient !== null) {
            $now = \hrtime(true);
            $this->gradient->ended(($now - $this->taken[$tag]) / 1e9, \count($this->taken), $now / 1e9);
        }
        unset($this->taken[$tag]);

        return true;
    }
}
