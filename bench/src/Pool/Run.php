<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\Load\Load;
use Weft\Bench\Measured;

/** One preset's run, as it stands in the results file. A failed run has a reason and no numbers. */
final class Run implements Measured
{
    private const NUMBERS = ['rps', 'p50_ms', 'p99_ms', 'requests', 'errors', 'cpu_s', 'database_cpu_s'];

    /** @param array<string, mixed> $fields as in the results file */
    private function __construct(private readonly array $fields)
    {
    }

    /**
     * @param float $cpuSeconds of the runner's processes during the load
     * @param float|null $databaseCpuSeconds of the database's; null when it cannot be told
     */
    public static function finished(Preset $preset, int $cores, Load $load, float $cpuSeconds, ?float $databaseCpuSeconds): self
    {
        return new self(self::identity($preset, $cores) + [
            'rps' => round($load->perSecond(), 1),
            'p50_ms' => round($load->latency->at(50), 2),
            'p99_ms' => round($load->latency->at(99), 2),
            'requests' => $load->requests,
            'errors' => $load->errors,
            'latency_ms' => $load->latency->toArray(),
            'times_ms' => array_map(static fn (float $time): float => round($time, 3), $load->times),
            'cpu_s' => round($cpuSeconds, 2),
            'database_cpu_s' => $databaseCpuSeconds === null ? null : round($databaseCpuSeconds, 2),
        ]);
    }

    /** @param string $log file that has the runner's output */
    public static function failed(Preset $preset, int $cores, string $reason, string $log): self
    {
        return new self(self::identity($preset, $cores) + array_fill_keys(self::NUMBERS, null) + ['failed' => $reason, 'log' => $log]);
    }

    /** @param array<string, mixed> $fields */
    public static function fromArray(array $fields): self
    {
        return new self($fields);
    }

    /** @return array<string, mixed> */
    public function toArray(): array
    {
        return $this->fields;
    }

    /** The same for the runs of one preset with, or without, a pool. */
    public function label(): string
    {
        return "{$this->fields['preset']}, pool " . ($this->fields['pool'] ? 'on' : 'off');
    }

    public function preset(): string
    {
        return $this->fields['preset'];
    }

    public function pool(): bool
    {
        return $this->fields['pool'];
    }

    public function failure(): ?string
    {
        return $this->fields['failed'] ?? null;
    }

    /** What came out, in a few words. */
    public function outcome(): string
    {
        return $this->failure() !== null
            ? "FAILED: {$this->failure()}"
            : sprintf('%s requests/s, %s errors', number_format($this->number('rps')), number_format($this->number('errors')));
    }

    public function isPerfect(): bool
    {
        return $this->failure() === null && $this->fields['errors'] === 0;
    }

    public function number(string $name): float|int|null
    {
        return $this->fields[$name];
    }

    /** @return array<string, mixed> */
    private static function identity(Preset $preset, int $cores): array
    {
        return [
            'preset' => $preset->name,
            'pool' => $preset->pool,
            'connections' => $preset->connections,
            'ceiling_rps' => round($preset->ceiling($cores), 1),
            'published_rps' => $preset->publishedRps,
            'published_error_percent' => round($preset->publishedErrors * 100, 1),
        ];
    }
}
