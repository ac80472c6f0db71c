<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

/** One way of one contender through all messages. */
final class Run
{
    /**
     * @param string $action publish or consume
     * @param float $cpu seconds of the client, its start included
     * @param float|null $brokerCpu seconds
     */
    public function __construct(
        public readonly string $contender,
        public readonly string $action,
        public readonly float $perSecond,
        public readonly float $cpu,
        public readonly ?float $brokerCpu,
        public readonly ?string $failure = null,
    ) {
    }

    /** @return array<string, mixed> */
    public function toArray(): array
    {
        return array_filter([
            'contender' => $this->contender,
            'action' => $this->action,
            'per_s' => round($this->perSecond, 1),
            'cpu_s' => round($this->cpu, 3),
            'broker_cpu_s' => $this->brokerCpu === null ? null : round($this->brokerCpu, 2),
            'failed' => $this->failure,
        ], static fn (mixed $value): bool => $value !== null);
    }
}
