<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * One worker process from start to end. Times are seconds of the monotonic clock.
 *
 * @internal
 */
final class Process
{
    /** How log messages name the process; {@see self::context()} has the values. */
    public const NAME = 'worker {worker} (pid {pid})';

    public State $state = State::Starting;
    public ?float $readyAt = null;
    /** When it was first seen at the limit of memory. */
    public ?float $outgrownAt = null;
    /** Units of work that the worker has reported. */
    public int $done = 0;
    /** @var list<string> the health checks that fail */
    public array $failing = [];
    /** Why the process was asked to end; null if it was not. */
    public ?string $reason = null;
    /** When the process is killed if it still runs. */
    public ?float $killAt = null;
    /** The supervisor ends it because it does not work: its end counts as a failure although there is a reason. */
    public bool $isFaulty = false;
    /** It stops although it was not asked to, and its slot has gone on without it. */
    public bool $hasLeft = false;
    /** Why it cannot listen on an address; null if it has not said so. */
    public ?string $refusal = null;
    /** @var list<string>|null the tasks that it last reported while draining */
    public ?array $running = null;

    public function __construct(
        public readonly int $pid,
        public readonly Slot $slot,
        public readonly float $startedAt,
        /** Seconds after which the process is recycled; null means never. */
        public readonly ?float $maxAge,
    ) {
    }

    /** Resident memory in bytes; 0 after the process has ended. */
    public function memory(): int
    {
        $status = (string) @\file_get_contents("/proc/$this->pid/status");

        return \preg_match('/^VmRSS:\s+(\d+) kB/m', $status, $found) === 1 ? (int) $found[1] * 1024 : 0;
    }

    /** @return array{worker: int, pid: int} */
    public function context(): array
    {
        return ['worker' => $this->slot->index, 'pid' => $this->pid];
    }
}
