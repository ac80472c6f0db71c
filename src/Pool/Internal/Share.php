<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

/**
 * This worker's part of a total. The supervisor sets `WEFT_WORKERS`, how many there are, and `WEFT_WORKER`, which of them
 * this one is.
 *
 * @internal
 */
final class Share
{
    /** The shares of all workers add up to `$total`, unless there are more workers: each needs at least 1. */
    public static function of(int $total): int
    {
        $workers = \max(1, (int) \getenv('WEFT_WORKERS'));
        $worker = \max(0, (int) \getenv('WEFT_WORKER')) % $workers;

        return \max(1, \intdiv($total, $workers) + ($worker < $total % $workers ? 1 : 0));
    }
}
