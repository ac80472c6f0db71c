<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Native;
use Weft\Runtime\Internal\Blocking;
use Weft\Runtime\Internal\Scheduler;

/**
 * Calls a servant when its pool has work: inside `run()` as soon as there is some, outside while somebody waits for the pool.
 *
 * @internal
 */
final class Bell
{
    /** Finishes when there is work. */
    private ?int $rung = null;
    /** @var \WeakReference<Scheduler>|null the loop that listens */
    private ?\WeakReference $loop = null;
    /** @var \WeakReference<Servant> which owns this */
    private readonly \WeakReference $servant;

    public function __construct(private readonly Native\Pool|Native\SqlDatabase $native, Servant $servant)
    {
        $this->servant = \WeakReference::create($servant);
    }

    public function __destruct()
    {
        $this->leave();
    }

    /** Waits for an operation of the pool and has done what it needs meanwhile. */
    public function await(int $op): mixed
    {
        if (Scheduler::$current?->running === null) {
            return $this->serveUntil($op);
        }
        $this->attend();

        return Scheduler::await($op);
    }

    /** From now on work is done as it comes, until the loop that runs ends; without one nothing happens. */
    public function attend(): void
    {
        $scheduler = Scheduler::$current;
        if ($scheduler !== null && $this->loop?->get() !== $scheduler) {
            $this->leave();
            $this->loop = \WeakReference::create($scheduler);
            $this->listen($scheduler);
        }
    }

    private function listen(Scheduler $scheduler): void
    {
        $bell = \WeakReference::create($this);
        $this->rung = $this->native->workWaits();
        $scheduler->listenTo($this->rung, static function (int $op) use ($bell, $scheduler): void {
            Native\take($op);
            $self = $bell->get();
            if ($self !== null) {
                $self->servant->get()?->serve($scheduler);
                $self->listen($scheduler);
            }
        });
    }

    private function serveUntil(int $op): mixed
    {
        $this->servant->get()?->serve();
        while (true) {
            if ($this->loop !== null) {
                $this->leave();
            }
            $rung = $this->rung ??= $this->native->workWaits();
            if (Blocking::awaitFirst($op, $rung) === $op) {
                return Blocking::await($op);
            }
            Blocking::await($rung);
            $this->rung = null;
            $this->servant->get()?->serve();
        }
    }

    private function leave(): void
    {
        if ($this->rung !== null) {
            $this->loop?->get()?->unlisten($this->rung);
            unset(Blocking::$finished[$this->rung]);
            Native\cancel($this->rung);
        }
        $this->rung = $this->loop = null;
    }
}
