<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\TimeoutException;

use function Weft\timeout;

/**
 * Lets tasks wait until something may have changed. They look again themselves: a wake-up carries nothing, and one that
 * nobody waits for is forgotten.
 *
 * @internal
 */
final class Wakeup
{
    /** @var array<int, \Weft\Runtime\Task> */
    private array $waiting = [];

    /** Counts the wake-ups, so that one that came before the wait is not missed. */
    public int $generation = 0;

    /**
     * @param string     $for     what a deadlock report says this task waits for
     * @param float|null $until   as microtime(true) has it; null waits for ever
     * @param int|null   $since   a generation; does not wait when there was a wake-up after it
     * @return bool false when the time is over
     */
    public function wait(string $for, ?float $until = null, ?int $since = null): bool
    {
        if ($since !== null && $since !== $this->generation) {
            return true;
        }
        if ($until === null) {
            $this->suspend($for);

            return true;
        }
        $left = $until - \microtime(true);
        if ($left <= 0.0) {
            return false;
        }
        try {
            timeout($left, fn() => $this->suspend($for));
        } catch (TimeoutException) {
            return false;
        }

        return true;
    }

    public function notify(): void
    {
        $this->generation++;
        if ($this->waiting !== []) {
            $waiting = $this->waiting;
            $this->waiting = [];
            foreach ($waiting as $task) {
                Scheduler::current()->wake($task);
            }
        }
    }

    private function suspend(string $for): void
    {
        $scheduler = Scheduler::current();
        $this->waiting[\spl_object_id($scheduler->task)] = $scheduler->task;
        try {
            $scheduler->suspend($for);
        } finally {
            unset($this->waiting[\spl_object_id($scheduler->task)]);
        }
    }
}
