<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * One worker process, from its start to its end. Times are seconds of the monotonic clock.
 *
 * @internal
 */
final class Process
{
    /** How log messages name it; {@see self::context()} has the values. */
    public const NAME = 'worker {worker} (pid {pid})';

    public State $state = State::Starting;
    public ?float $readyAt = null;
    /** Units of work it says it has done. */
    public int $done = 0;
    /** Why it was told to end, null where it was not. */
    public ?string $reason = null;
    /** When it is killed if it has not ended. */
    public ?float $killAt = null;
    public bool $hung = false;
    /** @var list<string>|null what it last said it still runs while it drains */
    public ?array $running = null;

    public function __construct(
        public readonly int $pid,
        public readonly Slot $slot,
        public readonly float $startedAt,
        /** Seconds after which it is recycled, null for never. */
        public readonly ?float $maxAge,
    ) {
    }

    /** Bytes of memory that are resident; 0 when it has ended. */
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
