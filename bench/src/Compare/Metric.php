<?php

declare(strict_types=1);

namespace Weft\Bench\Compare;

/** What is compared of a benchmark's runs. */
final class Metric
{
    /** What tells the loads and contenders of a benchmark apart; everything else in a run is a measurement. */
    public const IDENTITY = [
        'bus' => ['system', 'mode', 'transport', 'persistent', 'confirms'],
        'bus-matrix' => ['system', 'mode', 'transport', 'persistent', 'confirms'],
        'pool' => ['preset', 'pool'],
        'http' => ['system', 'case', 'protocol', 'connections'],
        'grpc' => ['system', 'preset'],
        'scale' => ['curve', 'series', 'x'],
    ];

    /** @param string|null $each field that counts what `$field` is shared by; null: nothing */
    private function __construct(public readonly string $field, public readonly bool $lessIsBetter, private readonly ?string $each = null)
    {
    }

    /**
     * @param non-empty-list<array<string, mixed>> $runs of one load
     *
     * @return list<self>
     */
    public static function of(string $benchmark, array $runs): array
    {
        $less = static fn (string $field): self => new self($field, true);
        $more = static fn (string $field): self => new self($field, false);

        return match ($benchmark) {
            'bus', 'bus-matrix' => [$less('seconds'), $less('cpu_s'), $less('rss_mib')],
            'pool' => [$more('rps'), $less('p99_ms'), new self('cpu_s', true, 'requests')],
            'http' => [$more('rps'), $less('cpu_us_per_request'), $less('p99_ms'), $less('rss_mib')],
            'grpc' => [$more('rps'), $less('cpu_us_per_call'), $less('p99_ms'), $less('rss_mib')],
            'scale' => [new self('y', $runs[0]['less_is_better'] ?? false)],
        };
    }

    /**
     * @param list<array<string, mixed>> $runs
     *
     * @return list<float|int> above 0, of the runs that have it
     */
    public function numbers(array $runs): array
    {
        $numbers = array_map(fn (array $run): float|int|null => $this->each === null || !is_numeric($run[$this->field] ?? null)
            ? $run[$this->field] ?? null
            : $run[$this->field] / max(1, $run[$this->each]), $runs);

        return array_values(array_filter($numbers, static fn (float|int|null $number): bool => $number !== null && $number > 0));
    }

    public function name(): string
    {
        return $this->each === null ? $this->field : "{$this->field} / {$this->each}";
    }
}
