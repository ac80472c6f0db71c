<?php

declare(strict_types=1);

namespace Weft\Runtime;

/**
 * Work that was started by `Weft\async()`. It ends within the scope it was started in.
 *
 * An interface, because an object that only forwards to the scheduler's own would cost a tenth of a task.
 */
interface Task
{
    /**
     * Waits for the end of the task and returns what it returned. Any number of tasks may wait, any number of times.
     *
     * Cancelling the one who waits does not cancel the task.
     *
     * @throws \Throwable what the task threw
     * @throws CancelledException the task was cancelled, or the one who waits was
     */
    public function await(): mixed;

    /**
     * Asks the task to end: its current or next suspension point throws a CancelledException, once, and `finally` blocks
     * run. What it started is cancelled with it. It never starts if it has not yet. No effect on a task that has ended
     * or was cancelled before.
     *
     * @param string $reason completes "the task was cancelled: …"
     */
    public function cancel(string $reason = 'cancel() was called'): void;

    /** Gives it a name for reports and messages. */
    public function named(string $name): static;

    /** Counts up from 1, the main task, in the order of starting. */
    public function id(): int;

    /** What `named()` set, by default the name of its function. */
    public function name(): string;

    public function state(): TaskState;

    public function isDone(): bool;
}
