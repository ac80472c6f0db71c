<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\ControlGroup;
use Weft\Bench\Server;

/** One of the four programs, with the limits it runs within. */
final class Part
{
    private ?Server $server = null;
    private float $cpuAtStart = 0.0;

    /** @param ControlGroup|null $group null: without limits */
    private function __construct(
        public readonly string $name,
        public readonly float $cpus,
        public readonly int $memoryMib,
        private readonly ?ControlGroup $group,
    ) {
    }

    /**
     * @param float $cpus processor seconds per second
     * @param bool $limited false runs it without limits
     */
    public static function within(string $name, float $cpus, int $memoryMib, bool $limited): self
    {
        $group = $limited ? ControlGroup::create('weft-rinha-' . getmypid() . "-$name", $cpus, $memoryMib * 1024 ** 2) : null;

        return new self($name, $cpus, $memoryMib, $group);
    }

    public function isLimited(): bool
    {
        return $this->group !== null;
    }

    /**
     * @param list<string> $command
     * @param array<string, string> $environment
     */
    public function start(array $command, array $environment, string $log, int $port): void
    {
        $this->server = Server::start([...$this->group?->enter() ?? [], ...$command], $environment, $log, $port);
    }

    /** From now on the processor time counts. */
    public function beginMeasurement(): void
    {
        $this->cpuAtStart = $this->cpuSeconds();
    }

    /**
     * @param float $seconds since the measurement began
     *
     * @return array<string, mixed> as in the results file
     */
    public function usage(float $seconds): array
    {
        $cpu = $this->cpuSeconds() - $this->cpuAtStart;

        return [
            'name' => $this->name,
            'cpus' => $this->cpus,
            'memory_limit_mib' => $this->memoryMib,
            'cpu_s' => round($cpu, 2),
            'mean_cpus' => round($cpu / $seconds, 3),
            'throttled_s' => round($this->group?->throttledSeconds() ?? 0.0, 2),
            'rss_mib' => round($this->server?->tree->residentMib() ?? 0.0, 1),
            'peak_memory_mib' => round($this->group?->peakMemoryMib() ?? 0.0, 1),
        ];
    }

    public function stop(): void
    {
        $this->server?->stop();
        $this->server = null;
        $this->group?->remove();
    }

    private function cpuSeconds(): float
    {
        return $this->group?->cpuSeconds() ?? $this->server?->tree->cpuSeconds() ?? 0.0;
    }
}
