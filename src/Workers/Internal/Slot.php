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
