<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** What one run of the Rinha came to. */
final class Results
{
    private const PERCENTILES = ['p50_ms' => 50, 'p75_ms' => 75, 'p95_ms' => 95, 'p99_ms' => 99, 'max_ms' => 100];

    /** @param array<string, mixed> $fields as in the results file */
    private function __construct(public readonly array $fields)
    {
    }

    /**
     * @param array<string, string> $versions by product, and PostgreSQL's settings
     * @param float $scale 1 for the whole load
     * @param int $expected people that were sent, are valid and have a nickname of their own
     * @param list<array<string, mixed>> $parts see {@see Part::usage()}
     */
    public static function of(
        string $machine,
        array $versions,
        bool $limited,
        float $scale,
        SimulationLog $log,
        int $people,
        int $expected,
        array $parts,
    ): self {
        $kinds = array_map(
            static fn (string $name): array => ['request' => $name] + self::times($log, $name),
            $log->names(),
        );

        return new self([
            'machine' => $machine,
            'versions' => $versions,
            'limited' => $limited,
            'scale' => round($scale, 4),
            'people' => $people,
            'expected_people' => $expected,
            'ko' => $log->failed(),
        ] + self::times($log, null) + ['failures' => $log->failures, 'runs' => $kinds, 'parts' => $parts]);
    }

    public static function load(string $path): self
    {
        return new self(ResultsFile::load($path));
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, $this->fields);
    }

    public function isPerfect(): bool
    {
        return $this->fields['people'] === $this->fields['expected_people'] && $this->fields['ko'] === 0;
    }

    public function summary(): string
    {
        return sprintf(
            '%s of %s people stored, %s requests, %s KO, p99 %d ms, %s',
            number_format($this->fields['people']),
            number_format($this->fields['expected_people']),
            number_format($this->fields['requests']),
            number_format($this->fields['ko']),
            $this->fields['p99_ms'],
            $this->fields['limited'] ? 'within 1.5 CPU and 3.0 GB' : 'without limits',
        );
    }

    public function requestTable(): Table
    {
        $rows = array_map(self::requestRow(...), [['request' => 'all'] + $this->fields, ...$this->fields['runs']]);

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

    /** What has been published of applications by the same load and within the same limits, beside this run. */
    public function publishedTable(): Table
    {
        return new Table(['who', 'machine', 'requests', 'KO', 'people', 'mean ms', 'p50', 'p75', 'p95', 'p99', 'max'], [
            ['Laravel, Octane, Swoole', 'Ryzen 4750U, 16 GB', '114,991', '0', '46,576', '4,458', '1,269', '8,503', '15,657', '17,033', '17,585'],
            ['Laravel, Octane, Swoole', 'Ryzen 5900X, 32 GB', '102,122', '20,409', '33,707', '–', '7,221', '–', '18,996', '19,882', '–'],
            ['Laravel, Octane, Swoole, later', 'Ryzen 5900X, 32 GB', '–', '–', '46,576', '3', '–', '–', '–', '44', '133'],
            ['Elixir', 'Ryzen 5900X, 32 GB', '114,991', '0', '46,576', '–', '–', '–', '–', '2', '–'],
            ['Go', 'Ryzen 5900X, 32 GB', '114,991', '0', '46,576', '–', '–', '–', '–', '1', '–'],
            ['Go', 'Ryzen 4750U, 16 GB', '–', '–', '–', '–', '–', '–', '–', '2', '41'],
            ['winner of the contest: Rust, Redis', 't3a.xlarge', '112,833', '3,140', '44,936', '–', '26', '–', '–', '17,418', '–'],
            [
                'Weft',
                'here',
                number_format($this->fields['requests']),
                number_format($this->fields['ko']),
                number_format($this->fields['people']),
                sprintf('%.1f', $this->fields['mean_ms']),
                ...array_map(fn (string $name): string => number_format($this->fields[$name]), array_keys(self::PERCENTILES)),
            ],
        ]);
    }

    /** @return array<string, string> for the page */
    public function markdown(): array
    {
        return [
            'summary' => $this->summary(),
            'machine' => $this->fields['machine'],
            'versions' => Page::versions($this->fields['versions']),
            'requests' => $this->requestTable()->markdown(),
            'published' => rtrim($this->publishedTable()->markdown()),
            'parts' => $this->partTable()->markdown(),
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
