<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\Table;

/** What the load came to with one way to insert. */
final class Run
{
    private const PERCENTILES = ['p50_ms' => 50, 'p75_ms' => 75, 'p95_ms' => 95, 'p99_ms' => 99, 'max_ms' => 100];

    /** @param array<string, mixed> $fields as in the results file */
    private function __construct(public readonly array $fields)
    {
    }

    /**
     * @param int $transactions that stored the people
     * @param int $expected people that were sent, are valid and have a nickname of their own
     * @param list<array<string, mixed>> $parts see {@see Part::usage()}
     */
    public static function of(Inserts $inserts, SimulationLog $log, int $people, int $transactions, int $expected, array $parts): self
    {
        $kinds = array_map(
            static fn (string $name): array => ['request' => $name] + self::times($log, $name),
            $log->names(),
        );

        return new self([
            'inserts' => $inserts->value,
            'people' => $people,
            'expected_people' => $expected,
            'transactions' => $transactions,
            'ko' => $log->failed(),
            'seconds' => round($log->seconds, 3),
        ] + self::times($log, null) + ['failures' => $log->failures, 'kinds' => $kinds, 'parts' => $parts]);
    }

    /** @param array<string, mixed> $fields */
    public static function fromArray(array $fields): self
    {
        return new self($fields);
    }

    public function inserts(): Inserts
    {
        return Inserts::from($this->fields['inserts']);
    }

    public function isPerfect(): bool
    {
        return $this->fields['people'] === $this->fields['expected_people'] && $this->fields['ko'] === 0;
    }

    public function summary(): string
    {
        return sprintf(
            '%s: %s of %s people stored in %s transactions, %s requests, %s KO, p99 %d ms',
            $this->inserts()->title(),
            number_format($this->fields['people']),
            number_format($this->fields['expected_people']),
            number_format($this->fields['transactions']),
            number_format($this->fields['requests']),
            number_format($this->fields['ko']),
            $this->fields['p99_ms'],
        );
    }

    public function requestTable(): Table
    {
        $rows = array_map(self::requestRow(...), [['request' => 'all'] + $this->fields, ...$this->fields['kinds']]);

        return new Table(['request', 'number', 'mean ms', 'p50', 'p75', 'p95', 'p99', 'max'], $rows);
    }

    public function partTable(): Table
    {
        $rows = array_map(static fn (array $part): array => [
            $part['name'],
            sprintf('%.2f', $part['cpus']),
            sprintf('%.2f', $part['mean_cpus']),
            sprintf('%.1f', $part['cpu_s']),
            sprintf('%.1f', $part['throttled_s']),
            number_format($part['memory_limit_mib']),
            number_format($part['peak_memory_mib']),
            number_format($part['rss_mib']),
        ], $this->fields['parts']);

        return new Table(['part', 'CPU limit', 'mean', 'CPU s', 'throttled s', 'MiB limit', 'peak', 'RSS at the end'], $rows);
    }

    /** @return list<string> its row in {@see Results::publishedTable()} */
    public function publishedRow(): array
    {
        // Runs before 2026-11-30 have none.
        $seconds = $this->fields['seconds'] ?? null;

        return [
            "Weft, {$this->inserts()->title()}",
            'here',
            number_format($this->fields['requests']),
            number_format($this->fields['ko']),
            number_format($this->fields['people']),
            $seconds === null ? '–' : sprintf('%.0f', $seconds),
            $seconds === null ? '–' : sprintf('%.1f', $this->fields['requests'] / $seconds),
            ...array_slice(self::requestRow(['request' => ''] + $this->fields), 2),
        ];
    }

    /** @return array<string, mixed> */
    private static function times(SimulationLog $log, ?string $name): array
    {
        $times = ['requests' => $log->requests($name), 'mean_ms' => round($log->mean($name), 2)];
        foreach (self::PERCENTILES as $field => $percent) {
            $times[$field] = (int) $log->percentile($percent, $name);
        }

        return $times + ['latency_ms' => $log->latency($name)->toArray()];
    }

    /**
     * @param array<string, mixed> $fields
     *
     * @return list<string>
     */
    private static function requestRow(array $fields): array
    {
        return [
            $fields['request'],
            number_format($fields['requests']),
            sprintf('%.1f', $fields['mean_ms']),
            ...array_map(static fn (string $name): string => number_format($fields[$name]), array_keys(self::PERCENTILES)),
        ];
    }
}
