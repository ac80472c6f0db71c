<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\Load\Load;
use Weft\Bench\Measured;

/** One contender under one preset, as it stands in the results file. A failed run has a reason and no numbers. */
final class Run implements Measured
{
    private const NUMBERS = ['rps', 'p50_ms', 'p99_ms', 'cpu_us_per_call', 'rss_mib', 'errors'];

    /** @param array<string, mixed> $fields as in the results file */
    private function __construct(private readonly array $fields)
    {
    }

    /**
     * @param float $cpuSeconds of the server's processes during the load
     * @param float $residentMib of the server's processes after it
     */
    public static function finished(string $system, Preset $preset, Load $load, float $cpuSeconds, float $residentMib): self
    {
        return new self(self::identity($system, $preset) + [
            'rps' => round($load->perSecond(), 1),
            'p50_ms' => round($load->latency->at(50), 3),
            'p99_ms' => round($load->latency->at(99), 3),
            'cpu_us_per_call' => $load->requests === 0 ? null : round($cpuSeconds * 1e6 / $load->requests, 2),
            'rss_mib' => round($residentMib, 1),
            'errors' => $load->errors,
            'latency_ms' => $load->latency->toArray(),
            'times_ms' => array_map(static fn (float $time): float => round($time, 3), $load->times),
        ]);
    }

    /** @param string $log file that has the contender's output */
    public static function failed(string $system, Preset $preset, string $reason, string $log): self
    {
        return new self(self::identity($system, $preset) + array_fill_keys(self::NUMBERS, null) + ['failed' => $reason, 'log' => $log]);
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

    public function system(): string
    {
        return $this->fields['system'];
    }

    /** The same for the runs of all contenders that are compared with each other. */
    public function preset(): string
    {
        return $this->fields['preset'];
    }

    public function failure(): ?string
    {
        return $this->fields['failed'] ?? null;
    }

    /** What came out, in a few words. */
    public function outcome(): string
    {
        return $this->failure() !== null ? "FAILED: {$this->failure()}" : sprintf(
            '%s calls/s, %.1f µs of CPU each%s',
            number_format($this->number('rps')),
            $this->number('cpu_us_per_call') ?? 0,
            $this->isPerfect() ? '' : ", {$this->number('errors')} ERRORS",
        );
    }

    public function isPerfect(): bool
    {
        return $this->failure() === null && $this->fields['errors'] === 0;
    }

    /** @param string $name of a number in the results file; null when the run failed */
    public function number(string $name): float|int|null
    {
        return $this->fields[$name];
    }

    /** @return array<string, mixed> */
    private static function identity(string $system, Preset $preset): array
    {
        return [
            'system' => $system,
            'preset' => $preset->name(),
            'tool' => $preset->tool,
            'call' => $preset->call->value,
            'concurrency' => $preset->concurrency,
            'connections' => $preset->connections,
        ];
    }
}
