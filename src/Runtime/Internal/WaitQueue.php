<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Tasks that wait for the same event, first in, first out. Each is woken with a value that cannot be withdrawn.
 *
 * @internal
 */
final class WaitQueue implements Wait
{
    /**
     * Keys only grow; `$head` is not above the first key. PHP compacts such an array itself.
     *
     * @var array<int, Coroutine>
     */
    private array $waiting = [];
    private int $head = 0;
    private int $tail = 0;

    public function __construct(private readonly string|\Stringable $subject)
    {
    }

    /**
     * Waits at the end of the queue for the value of a `wake()`.
     *
     * @param mixed $offered a value that the waking task may take, see `first()`
     */
    public function wait(mixed $offered = null): mixed
    {
        $task = Scheduler::taskToSuspend() ?? throw Scheduler::neverWoken($this);
        $task->handed = $offered;
        $task->ticket = $this->tail;
        $this->waiting[$this->tail++] = $task;
        try {
            $task->scheduler->park($task, $this);
        } catch (\Throwable $thrown) {
            // A handler of pcntl_signal() may throw out of any call: the queue must not wake a task that no longer waits in it.
            $task->wait = null;
            $this->abandon($task);
            throw $thrown;
        }
        $handed = $task->handed;
        $task->handed = null;

        return $handed;
    }

    /** Hands `$value` to the task that has waited longest. False if no task waits. */
    public function wake(mixed $value = null): bool
    {
        $task = $this->first();
        if ($task === null) {
            return false;
        }
        unset($this->waiting[$this->head++]);
        $task->handed = $value;
        $task->wake();

        return true;
    }

    public function wakeAll(mixed $value = null): void
    {
        while ($this->waiting !== []) {
            $this->wake($value);
        }
    }

    public function first(): ?Coroutine
    {
        if ($this->waiting === []) {
            return null;
        }
        while (!isset($this->waiting[$this->head])) {
            $this->head++;
        }

        return $this->waiting[$this->head];
    }

    public function isEmpty(): bool
    {
        return $this->waiting === [];
    }

    public function count(): int
    {
        return \count($this->waiting);
    }

    public function describe(): string
    {
        return (string) $this->subject;
    }

    public function abandon(Coroutine $task): void
    {
        unset($this->waiting[$task->ticket]);
        $task->handed = null;
    }
}
