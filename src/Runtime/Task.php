<?php

declare(strict_types=1);

namespace Weft\Runtime;

/**
 * A unit of work that `Weft\async()` has started. It ends before the scope in which it was started.
 *
 * An interface, because an object that only forwards to the scheduler's own would cost a tenth of a task.
 */
interface Task
{
    /**
     * Waits for the end of the task and returns what it returned. Any number of tasks may wait, any number of times.
     *
     * Cancelling the waiting task does not cancel this one.
     *
     * @throws \Throwable what the task threw
     * @throws CancelledException this task or the waiting task was cancelled
     */
    public function await(): mixed;

    /**
     * Asks the task to end: its current or next suspension point throws a CancelledException, once, and `finally` blocks
     * run. The tasks that it has started are cancelled as well. A task that has not started never does. No effect on a task that has ended
     * or was cancelled before.
     *
     * @param string $reason completes "the task was cancelled: …"
     */
    public function cancel(string $reason = 'cancel() was called'): void;

    /** Names the task in reports and messages. */
    public function named(string $name): static;

    /** The task's number, unique in the process: tasks are numbered in the order in which they were started. */
    public function id(): int;

    /** The name that `named()` has set, by default the name of the task's function. */
    public function name(): string;

    public function state(): TaskState;

    public function isDone(): bool;
}
