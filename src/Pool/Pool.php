<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\Native;
use Weft\Pool\Internal\ResourceLifecycle;
use Weft\Runtime\Internal\CompletionListener;
use Weft\Runtime\Internal\Scheduler;

/**
 * Lends resources of any kind, each to one borrower at a time, first come first served.
 *
 * A waiter takes whichever comes first: one that is returned, or one that is made for it. Works outside `Weft\run()` too; there
 * the factory runs while the borrower waits, and cannot be interrupted.
 *
 * @template T of mixed
 */
final class Pool
{
    private readonly Native\Pool $native;
    private readonly ResourceLifecycle $lifecycle;
    private readonly string $name;
    /** @var array<int, \WeakReference<Lease<T>>> what each task holds, where leases are bound to tasks */
    private array $bound = [];

    /**
     * @param \Closure(): T $factory makes a resource; runs in a task of its own and may wait
     * @param ?\Closure(T): (bool|void) $check whether an idle one still works; false or an exception ends it
     * @param ?\Closure(T): (bool|void) $reset cleans a returned one before anybody else gets it; false or an exception ends it
     * @param ?\Closure(T): void $close
     */
    public function __construct(
        \Closure $factory,
        private readonly PoolOptions $options = new PoolOptions(),
        ?\Closure $check = null,
        ?\Closure $reset = null,
        ?\Closure $close = null,
        private readonly Hooks $hooks = new Hooks(),
    ) {
        $this->name = $options->name === '' ? 'resources' : $options->name;
        $this->native = Native\Pool::open($options->native(), $this->name, $check !== null, $reset !== null);
        $this->lifecycle = new ResourceLifecycle($this->native, $this->name, $factory, $check, $reset, $close, $hooks);
        if ($options->minimumIdle > 0 && Scheduler::$current?->running !== null) {
            $this->lifecycle->await($this->native->warmUp());
        }
    }

    /**
     * Lends the resource used last, or the first that comes back or is made.
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
        $held = $this->options->bindToTask ? ($this->bound[$number] ?? null)?->get() : null;
        if ($held !== null && $held->isOpen()) {
            $held->borrowAgain();

            return $held;
        }
        $id = $this->native->borrow($number);
        if ($id < 0) {
            $id = $this->lifecycle->await(-$id);
        }
        $lease = new Lease($this, $id, $this->lifecycle->resources[$id], $number);
        if ($this->options->bindToTask) {
            $this->bound[$number] = \WeakReference::create($lease);
        }
        if ($task !== null && $this->options->autoReturn) {
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
     * Runs `$work` with a resource and returns it afterwards.
     *
     * @template R
     *
     * @param callable(T): R $work
     *
     * @return R
     */
    public function with(callable $work): mixed
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
     * Gives a resource back. Never waits.
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
     * Closes a resource its borrower knows to be broken instead of returning it.
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

    /** @return array<string, int|float|array<string, int>> the numbers of docs/pool.md */
    public function stats(): array
    {
        return $this->native->stats();
    }

    /** @return list<Leak> who holds a resource now, the oldest first; none of them need be a leak */
    public function holders(): array
    {
        return \array_map(fn (array $holder): Leak => Leak::of($this->name, $holder), $this->native->holders());
    }

    /**
     * Changes the sizes. What is too much is closed when it is idle.
     *
     * @param positive-int $size
     * @param non-negative-int $minimumIdle
     */
    public function resize(int $size, int $minimumIdle = 0): void
    {
        new PoolOptions(size: $size, minimumIdle: $minimumIdle);
        $this->native->resize($size, $minimumIdle);
    }

    /** From now on nothing is lent or made; borrowers wait, at most their timeout, until {@see resume()}. */
    public function suspend(): void
    {
        $this->native->suspend();
    }

    public function resume(): void
    {
        $this->native->resume();
    }

    /** Replaces every resource: the idle ones now, the others when they come back. */
    public function reset(): void
    {
        $this->native->reset();
    }

    /**
     * Refuses new borrowers and those that wait, closes what is idle, and returns when the last lease is back and closed.
     *
     * @throws StillBorrowedError when this task holds one itself; the pool stays open
     */
    public function close(): void
    {
        $own = Scheduler::task()->id ?? 0;
        foreach ($this->holders() as $holder) {
            if ($holder->task === $own) {
                throw new StillBorrowedError("The pool \"{$this->name}\" cannot be closed by a task that holds one of its resources, borrowed at {$holder->file}:{$holder->line}");
            }
        }
        $this->lifecycle->await($this->native->close());
        $this->lifecycle->finish();
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
        $task = Scheduler::$current?->running;
        if ($task !== null && $task->endings !== []) {
            unset($task->endings[\spl_object_id($lease)]);
        }
        if ($this->bound !== []) {
            unset($this->bound[$lease->task()]);
        }
        if ($this->hooks->returned === null) {
            $this->native->giveBack($lease->id, $broken);
            return;
        }
        $kept = false;
        try {
            ($this->hooks->returned)($resource);
            $kept = true;
        } finally {
            $this->native->giveBack($lease->id, $broken || !$kept);
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
            $borrowed($lease->resource());
            $kept = true;
        } finally {
            if (!$kept && $lease->isOpen()) {
                $this->discard($lease);
            }
        }
    }
}
