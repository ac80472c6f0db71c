<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

/**
 * Streams that hold an instance of an application while they wait for their client: at most half of the instances, so that clients that
 * read slowly do not take all. What further ones write is queued up to a limit, and their instance becomes free.
 *
 * @internal
 */
final class SlowClients
{
    /** Bytes that a stream queues instead of taking more than the share of slow clients. */
    public const QUEUED = 8 << 20;

    private int $waiting = 0;

    /** @param int $instances that the pool may have */
    public function __construct(public int $instances)
    {
    }

    /** Whether another stream may wait; if so, {@see end()} must follow. */
    public function begin(): bool
    {
        if ($this->waiting >= \max(1, \intdiv($this->instances, 2))) {
            return false;
        }
        $this->waiting++;

        return true;
    }

    public function end(): void
    {
        $this->waiting--;
    }
}
