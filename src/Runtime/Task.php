<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\Cancellation;
use Weft\Runtime\Internal\Coroutine;

/**
 * Work that was started by `Weft\async()` and ends within the scope it was started in.
 */
final class Task
{
    /** @internal */
    public function __construct(private readonly Coroutine $coroutine)
    {
    }

    /**
     * Waits for the end of the task and returns what it returned. Any number of tasks may wait, any number of times.
     *
     * Cancelling the one who waits does not cancel the task.
     *
     * @throws \Throwable what the task threw
     * @throws CancelledException the task was cancelled, or the one who waits was
     */
    public function await(): mixed
    {
        return $this->coroutine->join();
    }

    /**
     * Asks the task to end: its current or next suspension point throws a CancelledException, once, and `finally` blocks
     * run. What it started is cancelled with it. It never starts if it has not yet. No effect on a task that has ended
     * or was cancelled before.
     *
     * @param string $reason completes "the task was cancelled: …"
     */
    public function cancel(string $reason = 'cancel() was called'): void
    {
        $this->coroutine->cancel(new Cancellation($reason));
    }

    /** Gives it a name for reports and messages. */
    public function named(string $name): self
    {
        $this->coroutine->name = $name;

        return $this;
    }

    /** Counts up from 1, the main task, in the order of starting. */
    public function id(): int
    {
        return $this->coroutine->id;
    }

    /** What `named()` set, by default the name of its function. */
    public function name(): string
    {
        return $this->coroutine->name();
    }

    public function state(): TaskState
    {
        return $this->coroutine->state();
    }

    public function done(): bool
    {
        return $this->coroutine->outcome !== null;
    }
}
