<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Task;
use Weft\Runtime\TaskState;
use Weft\Runtime\Trace;

/**
 * The implementation of {@see Task}.
 *
 * Its properties are public because the scheduler reads several of them at every switch, and it has no constructor because
 * calling one with seven arguments took a sixth of the time it takes to start and finish a task.
 *
 * @internal
 */
final class Coroutine implements Task, \Stringable
{
    public Scheduler $scheduler;
    public int $id = 0;
    /** @var callable|null */
    public mixed $main = null;
    /** @var array<mixed> */
    public array $args = [];
    /** Null for the main task. */
    public ?Group $group = null;
    /** @var array<int, mixed> */
    public array $locals = [];
    /**
     * The current span, also given to the tasks it starts. The servers set it for each request, for which PHP checks this type fastest.
     *
     * @var Trace|TraceSource|null
     */
    public ?object $trace = null;
    /** The realm in which the task runs, also given to the tasks it starts. */
    public ?Native\Realm $realm = null;
    /** Whether it runs what an application in the realm is lent for, also given to the tasks it starts. The realm counts those. */
    public bool $isRealmWork = false;
    /** @var array<int, \WeakReference<CompletionListener>> listeners of its end, by object id */
    public array $endings = [];
    /** Seconds of the monotonic clock. */
    public float $since = 0.0;
    public ?\Fiber $fiber = null;
    /** The innermost scope it has open, which owns what it starts. */
    public ?Children $children = null;
    /** The id of the operation, or the PHP object, that it waits for. Null while it runs or is ready. */
    public int|Wait|null $wait = null;
    /** Its key in the WaitQueue in which it waits. */
    public int $ticket = 0;
    /** The value that a WaitQueue hands from one task to another. */
    public mixed $handed = null;
    /** The exception to throw at the next suspension point. */
    public ?Cancellation $interrupt = null;
    /** The depth of the scope that asked for the interruption; 0 is the task itself. The outermost wins. */
    private int $interruptDepth = 0;
    /** To be thrown by the suspension point that is being resumed. */
    public ?Cancellation $thrown = null;
    /** Interruptions for scopes up to this depth wait for the end of a shielded section. */
    private int $shield = -1;
    /** @var array<int, Cancellation> pending cancellations, by depth */
    private array $deferred = [];
    public bool $cancelled = false;
    /** How many waits, of this task and of those it has started, have thrown an interruption so far. */
    public int $interruptions = 0;
    /** Null until it has ended. */
    public ?TaskState $outcome = null;
    public mixed $result = null;
    public ?\Throwable $error = null;
    private ?string $name = null;
    private ?WaitQueue $joiners = null;

    /** Runs the task to its end, including its children. Throws nothing. */
    public function run(): void
    {
        $error = null;
        try {
            $this->result = $this->realm === null ? ($this->main)(...$this->args) : Exits::turnIntoExceptions(fn(): mixed => ($this->main)(...$this->args));
        } catch (\Throwable $error) {
        }
        if ($this->children !== null) {
            $error = $this->children->close($error);
        }
        if ($error === null) {
            $this->settle(TaskState::Completed);
        } else {
            $this->error = $error;
            $this->result = null;
            $this->settle(($this->cancelled || Scheduler::$processEnds) && $error instanceof CancelledException ? TaskState::Cancelled : TaskState::Failed);
        }
    }

    public function await(): mixed
    {
        if ($this->outcome === null) {
            if ($this->scheduler->running === $this && Scheduler::$current === $this->scheduler) {
                throw new \Error("Task {$this->label()} cannot wait for its own end");
            }
            $this->join();
        }
        if ($this->error !== null) {
            throw $this->error;
        }

        return $this->result;
    }

    /** Waits until the task has ended, whatever its outcome. One that the end of its run() has left behind does not end. */
    public function awaitEnd(): void
    {
        if ($this->outcome === null && !$this->scheduler->hasEnded()) {
            $this->join();
        }
    }

    private function join(): void
    {
        ($this->joiners ??= new WaitQueue("the end of task {$this->label()}"))->wait();
    }

    public function cancel(string $reason = 'cancel() was called'): void
    {
        $this->end(new Cancellation($reason));
    }

    /** Cancels the task with the first reason given. No effect on a task that has ended. */
    public function end(Cancellation $cancellation): void
    {
        if ($this->cancelled || $this->outcome !== null) {
            return;
        }
        $this->cancelled = true;
        if ($this->fiber === null) {
            $this->error = $this->exception($cancellation);
            $this->settle(TaskState::Cancelled);
            return;
        }
        $this->interrupt($cancellation, 0);
    }

    /** Throws at the suspension point where the task waits, or at the next one. */
    public function interrupt(Cancellation $cancellation, int $depth): void
    {
        if ($depth <= $this->shield) {
            $this->deferred[$depth] ??= $cancellation;
            return;
        }
        $this->demand($cancellation, $depth);
        $wait = $this->wait;
        if ($wait === null) {
            return;
        }
        if ($wait instanceof Wait) {
            $wait->abandon($this);
        } else {
            unset($this->scheduler->waiting[$wait]);
            Native\cancel($wait);
        }
        $this->thrown = $this->interrupt;
        $this->interrupt = null;
        $this->wake();
    }

    /** Shields `$section` from cancellations of the scopes around it. Scopes inside it can still be cancelled, for example by a timeout. */
    public function shield(callable $section): mixed
    {
        $before = $this->shield;
        $this->shield = ($this->children ?? new Children($this->scheduler, $this))->depth;
        if ($this->interrupt !== null) {
            $this->deferred[$this->interruptDepth] ??= $this->interrupt;
            $this->interrupt = null;
        }
        try {
            return $section();
        } finally {
            $this->shield = $before;
            foreach ($this->deferred as $depth => $cancellation) {
                if ($depth > $before) {
                    unset($this->deferred[$depth]);
                    $this->demand($cancellation, $depth);
                }
            }
        }
    }

    /** Among several interruptions the outermost scope's takes precedence, because it ends the others. */
    private function demand(Cancellation $cancellation, int $depth): void
    {
        if ($this->interrupt === null || $depth < $this->interruptDepth) {
            $this->interrupt = $cancellation;
            $this->interruptDepth = $depth;
        }
    }

    /** Makes the task ready. From here on its result cannot be withdrawn. */
    public function wake(): void
    {
        $this->wait = null;
        $this->scheduler->woken[] = $this;
    }

    /** The interruption to throw now: `throw $task->interruption()`. */
    public function interruption(): CancelledException
    {
        /** @var Cancellation $cancellation callers have checked that one of the two is set */
        $cancellation = $this->thrown ?? $this->interrupt;
        $this->thrown === null ? $this->interrupt = null : $this->thrown = null;
        for ($task = $this; $task !== null; $task = $task->owner()) {
            ++$task->interruptions;
        }

        return $this->exception($cancellation);
    }

    /** The task that started this one and waits for its end. */
    public function owner(): ?self
    {
        return $this->group instanceof Children ? $this->group->owner : null;
    }

    /** PHP destroys the fiber: only `finally` blocks still run. */
    public function isUnwinding(): bool
    {
        return $this->outcome === null && Scheduler::$current?->running !== $this
            && ($this->fiber === null || $this->fiber === \Fiber::getCurrent());
    }

    public function id(): int
    {
        return $this->id;
    }

    public function named(string $name): static
    {
        $this->name = $name;

        return $this;
    }

    public function isDone(): bool
    {
        return $this->outcome !== null;
    }

    public function state(): TaskState
    {
        return $this->outcome ?? match (true) {
            $this->wait !== null => TaskState::Waiting,
            $this->fiber === null => TaskState::Queued,
            $this->scheduler->running === $this => TaskState::Running,
            default => TaskState::Ready,
        };
    }

    /** @throws \Error always: text that contains a task was meant to contain its result */
    public function __toString(): never
    {
        throw new \Error("Task {$this->label()} was used as a string: use its result, \$task->await()");
    }

    /** `#7 sync` */
    public function label(): string
    {
        return "#$this->id " . $this->name();
    }

    public function name(): string
    {
        return $this->name ?? match (true) {
            $this->main === null => 'task',
            $this->group instanceof TaskNamer => $this->group->nameOf($this),
            default => CallSites::nameOf($this->main),
        };
    }

    public function origin(): string
    {
        return $this->main === null ? 'internal code' : CallSites::originOf($this->main);
    }

    private function exception(Cancellation $cancellation): CancelledException
    {
        $cancellation->wasDelivered = true;

        return new CancelledException("Task {$this->label()} was cancelled: $cancellation->reason", $cancellation);
    }

    private function tellEndings(): void
    {
        $endings = $this->endings;
        $this->endings = [];
        try {
            foreach ($endings as $ending) {
                $ending->get()?->taskEnded();
            }
        } catch (\Throwable $error) {
            $this->scheduler->fail($error);
        }
    }

    private function settle(TaskState $outcome): void
    {
        $this->outcome = $outcome;
        if ($this->isRealmWork) {
            $this->realm?->taskEnded();
        }
        if ($this->endings) {
            $this->tellEndings();
        }
        if ($this->joiners !== null) {
            $this->joiners->wakeAll();
            $this->joiners = null;
        }
        $this->group?->ended($this);
        // Only the result outlives the task. The released values may have destructors, which may throw.
        $this->fiber = null;
        try {
            $this->main = null;
            if ($this->args) {
                $this->args = [];
            }
            if ($this->locals) {
                $this->locals = [];
            }
            $this->trace = null;
        } catch (\Throwable $error) {
            $this->scheduler->fail($error);
        }
    }
}
