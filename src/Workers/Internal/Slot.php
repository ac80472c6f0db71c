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
    /** Consecutive successors that did not start. */
    private int $failedSuccessors = 0;
    /** Earliest time of the next successor, except in a requested reload. */
    public float $replaceAt = 0.0;

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

    /** Records a successor that ended before it was ready. @return float seconds until the next attempt */
    public function successorFailed(float $now): float
    {
        $delay = self::delay(++$this->failedSuccessors + 1);
        $this->replaceAt = $now + $delay;

        return $delay;
    }

    /** Called when a process is ready, and when there is new code. */
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
