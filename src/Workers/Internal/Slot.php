<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * One worker position. Processes replace each other in it; the index stays.
 *
 * @internal
 */
final class Slot
{
    /** Seconds after which a ready worker counts as stable: earlier failures no longer delay a restart. */
    private const STABLE_AFTER = 10.0;
    private const FIRST_DELAY = 0.1;
    private const MAX_DELAY = 30.0;

    public ?Process $current = null;
    /** The successor, which takes over when it is ready. */
    public ?Process $next = null;
    /** Why the successor was started: what the current worker ends for once the successor is ready. */
    public string $replaceReason = '';
    /** Failures in a row. */
    public int $failures = 0;
    /** When to start the next process while there is none. */
    public float $startAt = 0.0;
    /** How the last process ended that was not ready; null since one is. */
    private ?string $failedStart = null;
    /** Consecutive successors that did not start. */
    private int $failedSuccessors = 0;
    /** Earliest time of the next successor, except in a requested reload. */
    public float $replaceAt = 0.0;
    /** Processes in a row that had reached the limit of memory when they were hardly ready. */
    private int $outgrown = 0;
    /** Earliest time at which memory is a reason to recycle. */
    public float $recycleAt = 0.0;

    public function __construct(public readonly int $index)
    {
    }

    /**
     * Records an unexpected end of the process and schedules the next one: immediately after the first failure.
     *
     * @param Process|null $process null if it could not be started at all
     */
    public function failed(?Process $process, float $now): void
    {
        $readyAt = $process?->readyAt;
        $lived = $readyAt === null ? 0.0 : $now - $readyAt;
        $this->failures = $lived >= self::STABLE_AFTER ? 1 : $this->failures + 1;
        $this->startAt = $now + self::delay($this->failures);
    }

    /**
     * Records the end of a process that was not ready.
     *
     * @return bool whether the one before it has ended in the same way
     */
    public function failedToStart(string $how): bool
    {
        $isSame = $this->failedStart === $how;
        $this->failedStart = $how;

        return $isSame;
    }

    /** Called when a process is ready. */
    public function started(): void
    {
        $this->failedStart = null;
        $this->resetBackOff();
    }

    /** Starts no process until a reload sets another time. */
    public function awaitReload(): void
    {
        $this->startAt = \INF;
    }

    public function awaitsReload(): bool
    {
        return $this->startAt === \INF;
    }

    /** Records a successor that ended before it was ready. @return float seconds until the next attempt */
    public function successorFailed(float $now): float
    {
        $delay = self::delay(++$this->failedSuccessors + 1);
        $this->replaceAt = $now + $delay;

        return $delay;
    }

    /**
     * Records that the limit of memory recycles the process.
     *
     * @return float|null seconds until it may recycle the next one; null if the process had worked for long enough before it reached the limit
     */
    public function outgrown(Process $process, float $now): ?float
    {
        if ((float) $process->outgrownAt - (float) $process->readyAt >= self::STABLE_AFTER) {
            $this->resetRecycling();

            return null;
        }
        $delay = self::delay(++$this->outgrown + 1);
        $this->recycleAt = $now + $delay;

        return $delay;
    }

    public function resetRecycling(): void
    {
        $this->outgrown = 0;
        $this->recycleAt = 0.0;
    }

    /** Called when there is new code, too. */
    public function resetBackOff(): void
    {
        $this->failedSuccessors = 0;
        $this->replaceAt = 0.0;
    }

    /** Seconds; doubles from the second failure on, with 10 % jitter so that workers do not start in step. */
    private static function delay(int $failures): float
    {
        if ($failures < 2) {
            return 0.0;
        }
        $delay = \min(self::MAX_DELAY, self::FIRST_DELAY * 2 ** \min($failures - 2, 20));

        return $delay * \random_int(900, 1100) / 1000;
    }
}
