<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

/**
 * This worker's share of a total. The supervisor sets `WEFT_WORKERS`, the number of workers, and `WEFT_WORKER`, the number of
 * this worker, counted from 1.
 *
 * @internal
 */
final class WorkerShare
{
    /** The shares of all workers add up to `$total`. With more workers than that, each share is 1. */
    public static function of(int $total): int
    {
        $workers = \max(1, (int) \getenv('WEFT_WORKERS'));
        $worker = \max(0, (int) \getenv('WEFT_WORKER')) % $workers;

        return \max(1, \intdiv($total, $workers) + ($worker < $total % $workers ? 1 : 0));
    }
}
