<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * The place of one worker: processes come and go, the index stays.
 *
 * @internal
 */
final class Slot
{
    /** Seconds that a worker must live for its predecessors' failures to be forgotten. */
    private const FORGET_AFTER = 10.0;
    private const FIRST_DELAY = 0.1;
    private const LONGEST_DELAY = 30.0;

    public ?Process $current = null;
    /** The one that takes over when it is ready. */
    public ?Process $next = null;
    /** Failures in a row. */
    public int $failures = 0;
    /** When the next process is to be started, while there is none. */
    public float $startAt = 0.0;
    /** Successors in a row that have not started, and when another may be tried where nobody has asked for it. */
    private int $stillborn = 0;
    public float $replaceAt = 0.0;

    public function __construct(public readonly int $index)
    {
    }

    /** Remembers that its process has ended without being told to, and when to start another: at once the first time. */
    public function failed(Process $process, float $now): void
    {
        $lived = $process->readyAt === null ? 0.0 : $now - $process->readyAt;
        $this->failures = $lived >= self::FORGET_AFTER ? 1 : $this->failures + 1;
        $this->startAt = $now + self::delay($this->failures);
    }

    /** Remembers that the process that was to take over has ended before it was ready. @return float seconds until another may be tried */
    public function lostSuccessor(float $now): float
    {
        $delay = self::delay(++$this->stillborn + 1);
        $this->replaceAt = $now + $delay;

        return $delay;
    }

    /** A process has started, or there is new code that may. */
    public function forgive(): void
    {
        $this->stillborn = 0;
        $this->replaceAt = 0.0;
    }

    /** Seconds, doubling from the second failure on, plus or minus a tenth so that workers do not start in step. */
    private static function delay(int $failures): float
    {
        if ($failures < 2) {
            return 0.0;
        }
        $delay = \min(self::LONGEST_DELAY, self::FIRST_DELAY * 2 ** \min($failures - 2, 20));

        return $delay * \random_int(900, 1100) / 1000;
    }
}
