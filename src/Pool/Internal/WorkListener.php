<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Native;
use Weft\Runtime\Internal\Blocking;
use Weft\Runtime\Internal\Scheduler;

/**
 * Calls a handler when its pool has work: inside `run()` at once, outside while an operation of the pool is awaited.
 *
 * @internal
 */
final class WorkListener
{
    /** The operation that finishes when there is work. */
    private ?int $signal = null;
    /** @var \WeakReference<Scheduler>|null the scheduler that listens */
    private ?\WeakReference $loop = null;
    /** @var \WeakReference<WorkHandler> the owner of this listener */
    private readonly \WeakReference $handler;

    public function __construct(private readonly Native\Pool|Native\SqlDatabase $native, WorkHandler $handler)
    {
        $this->handler = \WeakReference::create($handler);
    }

    public function __destruct()
    {
        $this->stop();
    }

    /** Waits for an operation of the pool and handles the pool's work meanwhile. */
    public function await(int $op): mixed
    {
        if (Scheduler::$current?->running === null) {
            return $this->handleWorkUntil($op);
        }
        $this->listen();

        return Scheduler::await($op);
    }

    /** Handles work as it comes, until the running scheduler ends. Does nothing outside `run()`. */
    public function listen(): void
    {
        $scheduler = Scheduler::$current;
        if ($scheduler !== null && $this->loop?->get() !== $scheduler) {
            $this->stop();
            $this->loop = \WeakReference::create($scheduler);
            // What the end of another run() has cut off announces itself no more.
            $this->handler->get()?->handleWork($scheduler);
            $this->awaitWork($scheduler);
        }
    }

    private function awaitWork(Scheduler $scheduler): void
    {
        $listener = \WeakReference::create($this);
        $this->signal = $this->native->workArrived();
        $scheduler->listenTo($this->signal, static function (int $op) use ($listener, $scheduler): void {
            Native\take($op);
            $self = $listener->get();
            if ($self !== null) {
                $self->handler->get()?->handleWork($scheduler);
                $self->awaitWork($scheduler);
            }
        });
    }

    private function handleWorkUntil(int $op): mixed
    {
        $this->handler->get()?->handleWork();
        while (true) {
            if ($this->loop !== null) {
                $this->stop();
            }
            $signal = $this->signal ??= $this->native->workArrived();
            if (Blocking::awaitFirst($op, $signal) === $op) {
                return Blocking::await($op);
            }
            Blocking::await($signal);
            $this->signal = null;
            $this->handler->get()?->handleWork();
        }
    }

    private function stop(): void
    {
        if ($this->signal !== null) {
            $this->loop?->get()?->unlisten($this->signal);
            unset(Blocking::$finished[$this->signal]);
            Native\cancel($this->signal);
        }
        $this->signal = $this->loop = null;
    }
}
