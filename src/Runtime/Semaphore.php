<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\WaitQueue;

/**
 * Limits how many tasks do something at a time.
 *
 * A released permit goes directly to the task that has waited longest.
 */
final class Semaphore
{
    private int $free;
    private readonly WaitQueue $waiters;

    /** @param int $permits at least 1 */
    public function __construct(public readonly int $permits)
    {
        if ($permits < 1) {
            throw new \ValueError("A semaphore needs at least 1 permit, got $permits");
        }
        $this->free = $permits;
        $this->waiters = new WaitQueue("one of $permits permits of a semaphore");
    }

    /** Waits for a permit. The permit returns with `release()`, or when its last reference is gone. */
    public function acquire(): Permit
    {
        if ($this->free > 0) {
            $this->free--;
        } else {
            $this->waiters->wait();
        }

        return new Permit($this->release(...));
    }

    /** Returns a permit if one is available now, null otherwise. */
    public function tryAcquire(): ?Permit
    {
        return $this->free > 0 ? $this->acquire() : null;
    }

    /**
     * Runs `$work` while holding a permit.
     *
     * @template T
     *
     * @param callable(): T $work
     *
     * @return T
     */
    public function withPermit(callable $work): mixed
    {
        $permit = $this->acquire();
        try {
            return $work();
        } finally {
            $permit->release();
        }
    }

    /** The number of permits that no task holds. */
    public function availablePermits(): int
    {
        return $this->free;
    }

    private function release(): void
    {
        if (!$this->waiters->wake()) {
            $this->free++;
        }
    }
}
