<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Weft\Native;

/**
 * The metrics of a supervisor.
 *
 * @internal
 */
final class WorkerMetrics
{
    public static function started(): void
    {
        Native\addToCounter('weft_worker_starts_total', 'Worker processes started.', [], 1);
    }

    public static function ended(string $reason): void
    {
        Native\addToCounter('weft_worker_exits_total', 'Worker processes that have ended, by reason.', ['reason' => $reason], 1);
    }

    public static function reload(string $result): void
    {
        Native\addToCounter('weft_reloads_total', 'Rolling reloads, by result.', ['result' => $result], 1);
    }

    /** @param array<string, int> $states how many workers are in each state */
    public static function workers(array $states): void
    {
        foreach ($states as $state => $count) {
            Native\setGauge('weft_workers', 'Worker processes by state.', ['state' => $state], $count);
        }
    }

    public static function memory(int $worker, int $bytes): void
    {
        Native\setGauge('weft_worker_resident_bytes', 'Resident memory of a worker.', ['worker' => (string) $worker], $bytes);
    }
}
