<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Tasks that wait for their turn with a handle that one task may read while another one writes it. First in, first out for each side.
 *
 * @internal
 */
final class TurnQueue implements Wait
{
    private const BOTH_SIDES = 3;

    /** @var array<int, array{Coroutine, int}> the tasks that wait and their sides, by ticket */
    private array $waiting = [];
    /** @var array<int, int> the sides of the tasks that have been given their turn and have not run since, by ticket */
    private array $given = [];
    private int $nextTicket = 0;

    public function __construct(private readonly string $subject)
    {
    }

    /** @param int $sides 1 to read, 2 to write, 3 for both */
    public function wait(int $sides): void
    {
        $task = Scheduler::taskToSuspend() ?? throw Scheduler::neverWoken($this);
        $ticket = $task->ticket = $this->nextTicket++;
        $this->waiting[$ticket] = [$task, $sides];
        try {
            $task->scheduler->park($task, $this);
        } finally {
            unset($this->waiting[$ticket], $this->given[$ticket]);
        }
    }

    /** Wakes the first task of each side that is free. No task overtakes another one that waits for one of its sides. */
    public function give(int $sidesInUse): void
    {
        $taken = $sidesInUse;
        foreach ($this->given as $sides) {
            $taken |= $sides;
        }
        foreach ($this->waiting as $ticket => [$task, $sides]) {
            if ($taken === self::BOTH_SIDES) {
                return;
            }
            if (($sides & $taken) === 0) {
                unset($this->waiting[$ticket]);
                $this->given[$ticket] = $sides;
                $task->wake();
            }
            $taken |= $sides;
        }
    }

    public function isEmpty(): bool
    {
        return $this->waiting === [] && $this->given === [];
    }

    public function describe(): string
    {
        return $this->subject;
    }

    public function abandon(Coroutine $task): void
    {
        unset($this->waiting[$task->ticket]);
    }
}
