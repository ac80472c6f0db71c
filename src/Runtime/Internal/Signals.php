<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;

/**
 * Signals that have no default effect from the construction of this object on, until the first has come or {@see close()} is called.
 *
 * For tasks. A program makes the object before it tells others that they may stop it: the signal can come at once.
 *
 * @internal
 */
final class Signals
{
    /** @var array<int> operations, one for each signal, until the first has come */
    private array $ops;
    private readonly Scheduler $scheduler;
    private readonly WaitQueue $arrival;
    /** The operation of the first that has come, until it is waited for. */
    private ?int $arrived = null;
    private bool $isGivenUp = false;

    public function __construct(int ...$signals)
    {
        $this->scheduler = Scheduler::task()->scheduler ?? throw new \Error('Waiting for a stop needs a running event loop: call it inside Weft\run()');
        $this->arrival = new WaitQueue('one of the signals ' . \implode(', ', $signals));
        $this->ops = \array_map(Native\signal(...), $signals);
        foreach ($this->ops as $op) {
            $this->scheduler->watch($op, $this->arrive(...));
        }
    }

    /** The first of the signals, at once if it has come since the construction. Inside of a task it is suspended; elsewhere the process waits. */
    #[WaitsFor('a signal')]
    public static function first(int ...$signals): int
    {
        if (Scheduler::taskToSuspend() !== null) {
            return (int) (new self(...$signals))->wait();
        }
        $ops = \array_map(Native\signal(...), $signals);
        try {
            $first = Blocking::awaitFirst(...$ops);
        } finally {
            foreach ($ops as $op) {
                $op === ($first ?? null) || Native\cancel($op);
            }
        }

        return Scheduler::await($first);
    }

    /** The first of the signals since the construction; null after {@see giveUp()}. To be called once. */
    public function wait(): ?int
    {
        try {
            $this->arrived === null && !$this->isGivenUp && $this->arrival->wait();
        } catch (\Throwable $cancelled) {
            $this->close();
            throw $cancelled;
        }
        if ($this->arrived === null) {
            return null;
        }
        [$arrived, $this->arrived] = [$this->arrived, null];
        $this->close();

        return Native\take($arrived);
    }

    /** Ends {@see wait()} without a signal. The first that comes still has no effect, until {@see close()}. */
    public function giveUp(): void
    {
        $this->isGivenUp = true;
        $this->arrival->wake();
    }

    /** Gives the signals the effect back that they had, when the event loop looks for work next. */
    public function close(): void
    {
        foreach ($this->ops as $op) {
            $this->scheduler->unwatch($op);
        }
        $this->ops = [];
        if ($this->arrived !== null) {
            Native\cancel($this->arrived);
            $this->arrived = null;
        }
    }

    private function arrive(int $op): void
    {
        if ($this->arrived !== null) {
            // Both came before the loop looked: one is enough.
            Native\cancel($op);

            return;
        }
        // A second signal has its effect, also before the first is waited for. In a worker of a supervisor that of SIGTERM and SIGINT is none
        // from now on.
        $this->close();
        $this->arrived = $op;
        $this->arrival->wake();
    }
}
