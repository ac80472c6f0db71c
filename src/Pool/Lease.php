<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\Runtime\Internal\CompletionListener;
use Weft\Runtime\Internal\Coroutine;

/**
 * The right to use one resource until it is returned: by {@see Pool::return()}, at the end of {@see Pool::with()}, or when the
 * last reference to the lease is released.
 *
 * @template T
 */
final class Lease implements CompletionListener
{
    /** Outstanding borrows of the task, with `bindToTask`. */
    private int $borrows = 1;
    /** The interruptions of the task, and of those it has started, when it borrowed the resource. */
    private readonly int $interruptions;

    /**
     * @internal made by {@see Pool}
     *
     * @param T $resource
     */
    public function __construct(private readonly Pool $pool, public readonly int $id, private mixed $resource, private readonly ?Coroutine $task)
    {
        $this->interruptions = $task->interruptions ?? 0;
    }

    /**
     * @return T
     *
     * @throws LeaseReturnedError
     */
    public function resource(): mixed
    {
        return $this->resource ?? throw new LeaseReturnedError("The lease of resource #{$this->id} was returned before; it cannot be used any more");
    }

    public function isOpen(): bool
    {
        return $this->resource !== null;
    }

    /** @internal */
    public function belongsTo(Pool $pool): bool
    {
        return $this->pool === $pool;
    }

    /** @internal */
    public function borrowAgain(): void
    {
        $this->borrows++;
    }

    /** @internal true when the resource has to be returned now */
    public function end(bool $all): bool
    {
        if ($this->resource === null || !$all && --$this->borrows > 0) {
            return false;
        }
        $this->resource = null;

        return true;
    }

    /** @internal */
    public function task(): int
    {
        return $this->task->id ?? 0;
    }

    /**
     * @internal whether a wait of its task, or of a task that this has started, was cut short since it was borrowed: a library's call that is
     *     interrupted in the middle of a conversation leaves its connection unusable
     */
    public function wasInterrupted(): bool
    {
        return $this->task !== null && ($this->task->interruptions !== $this->interruptions || $this->task->isUnwinding());
    }

    /** @internal */
    public function taskEnded(): void
    {
        if ($this->resource !== null) {
            $this->pool->reclaim($this);
        }
    }

    /** A copy would return a resource that another task holds by then. */
    private function __clone()
    {
    }

    public function __destruct()
    {
        if ($this->resource !== null) {
            $this->pool->reclaim($this);
        }
    }
}
