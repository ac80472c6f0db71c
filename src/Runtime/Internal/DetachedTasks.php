<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\Task;
use Weft\Runtime\TaskState;

/**
 * The detached tasks. No task awaits them, so their failures are reported.
 *
 * @internal
 */
final class DetachedTasks implements Group
{
    /** @var array<int, Coroutine> */
    public array $members = [];
    /** Whether run() ends, and has cancelled them. */
    public bool $isEnding = false;

    /** @param (\Closure(\Throwable, Task): void)|null $uncaught */
    public function __construct(private readonly Scheduler $scheduler, private readonly ?\Closure $uncaught)
    {
    }

    /**
     * @param callable $main
     * @param array<mixed> $args
     */
    public function start(mixed $main, array $args): Coroutine
    {
        $task = $this->scheduler->start($main, $args, $this, $this->scheduler->running);
        foreach ($task->locals as $key => $value) {
            if ($key < 0) {
                unset($task->locals[$key]);
            }
        }
        $this->members[$task->id] = $task;

        return $task;
    }

    /**
     * Starts a task that inherits nothing from the running one, which only happens to be the first to need it: the factory of a pool.
     *
     * @param callable $main
     * @param array<mixed> $args
     */
    public function startUnrelated(mixed $main, array $args): Coroutine
    {
        $task = $this->scheduler->start($main, $args, $this, null);
        $this->members[$task->id] = $task;

        return $task;
    }

    public function ended(Coroutine $child): void
    {
        if ($child->outcome === TaskState::Failed && $child->error !== null) {
            // The handler may wait: run() does not return before it.
            $this->report($child, $child->error);
        }
        unset($this->members[$child->id]);
    }

    public function members(): array
    {
        return $this->members;
    }

    public function cancel(): void
    {
        $this->isEnding = true;
        $cancellation = new Cancellation('run() has ended');
        foreach ($this->members as $task) {
            $task->end($cancellation);
        }
    }

    private function report(Coroutine $child, \Throwable $error): void
    {
        try {
            if ($this->uncaught !== null) {
                ($this->uncaught)($error, $child);
            } else {
                Warnings::trigger("Uncaught exception in detached task {$child->label()}: $error");
            }
        } catch (\Throwable $thrown) {
            $this->scheduler->fail($thrown);
        }
    }
}
