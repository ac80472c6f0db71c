<?php

declare(strict_types=1);

namespace Weft\Bench\Clients;

/** One way of one client through one load. */
final class Run
{
    /**
     * @param string $client as Workload::contenders() names it
     * @param float $perSecond operations
     * @param float $cpu microseconds of the client's processor time an operation
     * @param string|null $failure why the run counts for nothing
     */
    public function __construct(
        public readonly Workload $workload,
        public readonly string $client,
        public readonly int $round,
        public readonly float $perSecond,
        public readonly float $cpu,
        public readonly ?string $failure = null,
    ) {
    }

    /** @return array<string, mixed> */
    public function toArray(): array
    {
        return array_filter([
            'workload' => $this->workload->value,
            'client' => $this->client,
            'round' => $this->round,
            'per_s' => round($this->perSecond, 1),
            'cpu_us' => round($this->cpu, 3),
            'failed' => $this->failure,
        ], static fn (mixed $value): bool => $value !== null);
    }
}
