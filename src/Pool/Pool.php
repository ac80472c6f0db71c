<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\Internal\Number;
use Weft\Native;
use Weft\Pool\Internal\Borrowing;
use Weft\Pool\Internal\ResourceLifecycle;
use Weft\Runtime\Internal\CompletionListener;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Timeout;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\TimeoutException;

/**
 * Lends resources of any kind, each to one borrower at a time, first come first served.
 *
 * A waiting borrower gets the first resource that is returned or created. A pool also works outside `Weft\run()`; there the
 * factory blocks the borrower and cannot be interrupted.
 *
 * @template T of mixed
 */
final class Pool
{
    private readonly Native\Pool $native;
    private readonly ResourceLifecycle $lifecycle;
    private readonly string $name;
    /** Whether hooks, or other calls of the same task, have to know of each lease. */
    private readonly bool $hasLeases;
    /** @var array<int, \WeakReference<Lease<T>>> the lease of each task, with `bindToTask` */
    private array $bound = [];
    /** @var list<Borrowing> of calls of with() that have ended */
    private array $unused = [];

    /**
     * @param \Closure(): T $factory creates a resource; runs in a task of its own and may suspend
     * @param PoolOptions $options size, times, and what is checked
     * @param ?\Closure(T): (bool|void) $check checks whether an idle resource works; after false or an exception it is closed
     * @param ?\Closure(T): (bool|void) $reset cleans a returned resource; after false or an exception it is closed
     * @param ?\Closure(T): void $close frees a resource that leaves the pool
     * @param Hooks $hooks callbacks in the life cycle of each resource
     */
    #[WaitsFor('the first resources of pool "{name}"')]
    public function __construct(
        \Closure $factory,
        private readonly PoolOptions $options = new PoolOptions(),
        ?\Closure $check = null,
        ?\Closure $reset = null,
        ?\Closure $close = null,
        private readonly Hooks $hooks = new Hooks(),
    ) {
        $this->name = $options->name === '' ? 'resources' : $options->name;
        $this->hasLeases = $options->leases->bindToTask || $hooks->borrowed !== null || $hooks->returned !== null;
        $this->native = Native\Pool::open($options->native(), $this->name, $check !== null, $reset !== null);
        $this->lifecycle = new ResourceLifecycle($this->native, $this->name, $factory, $check, $reset, $close, $hooks);
        if ($options->minimumIdle > 0 && Scheduler::$current?->running !== null) {
            $this->lifecycle->await($this->native->warmUp());
        }
    }

    /**
     * Lends the resource that was used last, or the first that is returned or created.
     *
     * @return Lease<T>
     *
     * @throws PoolExhaustedException
     * @throws ResourceNotReadyException
     * @throws NestedBorrowException
     * @throws FactoryException
     * @throws FactoryDownException
     * @throws PoolClosedException
     */
    public function borrow(): Lease
    {
        $task = Scheduler::task();
        $number = $task->id ?? 0;
        $held = $this->options->leases->bindToTask ? ($this->bound[$number] ?? null)?->get() : null;
        if ($held !== null && $held->isOpen()) {
            $held->borrowAgain();

            return $held;
        }
        $id = $this->native->borrow($number);
        if ($id < 0) {
            $id = $this->lifecycle->awaitResource(-$id);
        }
        $lease = new Lease($this, $id, $this->lifecycle->resources[$id], $task);
        if ($this->options->leases->bindToTask) {
            $this->bound[$number] = \WeakReference::create($lease);
        }
        if ($task !== null && $this->options->leases->autoReturn) {
            /** @var \WeakReference<CompletionListener> $ending */
            $ending = \WeakReference::create($lease);
            $task->endings[\spl_object_id($lease)] = $ending;
        }
        if ($this->hooks->borrowed !== null) {
            $this->callBorrowed($lease, $this->hooks->borrowed);
        }

        return $lease;
    }

    /**
     * Runs `$work` with a resource and returns it afterwards; a resource whose holder, or a task that the holder has started, was interrupted is
     * closed instead.
     *
     * @template R
     *
     * @param callable(T): R $work
     *
     * @return R
     */
    public function with(callable $work): mixed
    {
        if ($this->hasLeases) {
            return $this->withLease($work);
        }
        // Only this call knows that the resource is borrowed: a lease, and a listener for the end of the task, would cost twice as much.
        $task = Scheduler::task();
        $id = $this->native->borrow($task->id ?? 0);
        if ($id < 0) {
            $id = $this->lifecycle->awaitResource(-$id);
        }
        $borrowing = \array_pop($this->unused) ?? new Borrowing($this->native);
        $borrowing->id = $id;
        $interruptions = $task->interruptions ?? 0;
        try {
            return $work($this->lifecycle->resources[$id]);
        } finally {
            $borrowing->id = 0;
            $this->unused[] = $borrowing;
            $next = $this->native->giveBack($id, $task !== null && ($task->interruptions !== $interruptions || $task->isUnwinding()));
            if ($next !== 0) {
                Scheduler::handOver($next);
            }
        }
    }

    /**
     * @template R
     *
     * @param callable(T): R $work
     *
     * @return R
     */
    private function withLease(callable $work): mixed
    {
        $lease = $this->borrow();
        try {
            return $work($lease->resource());
        } finally {
            if ($lease->isOpen()) {
                $this->return($lease);
            }
        }
    }

    /**
     * Returns a resource. Never waits. If a cancellation or timeout has ended a wait of its task, or of a task that this has started, since it
     * was borrowed, the resource is closed instead: a connection with an unread answer must not be lent again.
     *
     * @param Lease<T> $lease
     *
     * @throws ForeignLeaseError
     * @throws LeaseReturnedError
     */
    public function return(Lease $lease): void
    {
        $this->end($lease, false);
    }

    /**
     * Closes a resource instead of returning it, because it is broken.
     *
     * @param Lease<T> $lease
     *
     * @throws ForeignLeaseError
     * @throws LeaseReturnedError
     */
    public function discard(Lease $lease): void
    {
        $this->end($lease, true);
    }

    /** @return array<string, int|float|array<string, int>> the statistics that docs/reference/pool.md lists */
    public function stats(): array
    {
        return $this->native->stats();
    }

    /** @return list<Holder> the tasks that hold a resource now, the longest first */
    public function holders(): array
    {
        return \array_map(fn (array $holder): Holder => Holder::of($this->name, $holder), $this->native->holders());
    }

    /**
     * Changes the size and the minimum of idle resources. A surplus resource is closed as soon as it is idle.
     *
     * @param positive-int $size
     * @param non-negative-int $minimumIdle
     */
    public function resize(int $size, int $minimumIdle = 0): void
    {
        new PoolOptions(size: $size, minimumIdle: $minimumIdle);
        $this->native->resize($size, $minimumIdle);
    }

    /** Stops lending and creating. Borrowers wait, at most for the borrow timeout, until {@see resume()}. */
    public function pause(): void
    {
        $this->native->pause();
    }

    public function resume(): void
    {
        $this->native->resume();
    }

    /** Replaces every resource: idle ones now, lent ones when they are returned. */
    public function reset(): void
    {
        $this->native->reset();
    }

    /**
     * Refuses all borrowers, also waiting ones, cancels running factories, closes idle resources, and returns when the factories have ended and the
     * last lease is returned and closed.
     *
     * @throws StillBorrowedError when the calling task holds a resource; the pool stays open
     */
    public function close(): void
    {
        $own = Scheduler::taskToSuspend()->id ?? 0;
        foreach ($this->holders() as $holder) {
            if ($holder->task === $own) {
                throw new StillBorrowedError("The pool \"{$this->name}\" cannot be closed by a task that holds one of its resources, borrowed at {$holder->file}:{$holder->line}");
            }
        }
        $this->lifecycle->finish($this->native->close());
    }

    /**
     * @internal the last reference to the lease is gone, or its task has ended
     *
     * @param Lease<T> $lease
     */
    public function reclaim(Lease $lease): void
    {
        $this->takeBack($lease, $this->lifecycle->resources[$lease->id] ?? null, true, false);
    }

    /** @param Lease<T> $lease */
    private function end(Lease $lease, bool $broken): void
    {
        if (!$lease->belongsTo($this)) {
            throw new ForeignLeaseError("The lease of resource #{$lease->id} is not of the pool \"{$this->name}\"");
        }
        $this->takeBack($lease, $lease->resource(), $broken, $broken);
    }

    /** @param Lease<T> $lease */
    private function takeBack(Lease $lease, mixed $resource, bool $all, bool $broken): void
    {
        if (!$lease->end($all)) {
            return;
        }
        $broken = $broken || $lease->wasInterrupted();
        $task = Scheduler::$current?->running;
        if ($task !== null && $task->endings !== []) {
            unset($task->endings[\spl_object_id($lease)]);
        }
        if ($this->bound !== []) {
            unset($this->bound[$lease->task()]);
        }
        $kept = $this->hooks->returned === null;
        try {
            if ($this->hooks->returned !== null) {
                ($this->hooks->returned)($resource);
                $kept = true;
            }
        } finally {
            $next = $this->native->giveBack($lease->id, $broken || !$kept);
            if ($next !== 0) {
                Scheduler::handOver($next);
            }
        }
    }

    /**
     * @param Lease<T> $lease
     * @param \Closure(mixed): void $borrowed
     */
    private function callBorrowed(Lease $lease, \Closure $borrowed): void
    {
        $kept = false;
        try {
            $this->limited(static fn(): mixed => $borrowed($lease->resource()), $lease->id);
            $kept = true;
        } finally {
            if (!$kept && $lease->isOpen()) {
                $this->discard($lease);
            }
        }
    }

    /**
     * Ends a hook `borrowed` that takes longer than `timeouts.borrow`, where a task can be interrupted.
     *
     * @param \Closure(): mixed $hook
     */
    private function limited(\Closure $hook, int $id): void
    {
        $task = Scheduler::task();
        $seconds = $this->options->timeouts->borrow;
        if ($task === null || $seconds === 0.0) {
            $hook();

            return;
        }
        $own = null;
        try {
            Timeout::run($task, $seconds, static function () use ($hook, &$own): void {
                try {
                    $hook();
                } catch (TimeoutException $own) {
                    throw $own;
                }
            });
        } catch (TimeoutException $expired) {
            if ($expired === $own) {
                throw $expired;
            }
            $message = "pool \"{$this->name}\": the hook \"borrowed\" of resource #{$id} took longer than timeouts.borrow, " . Number::text($seconds) . ' s; the resource is closed';
            throw new ResourceNotReadyException($message, previous: $expired);
        }
    }
}
