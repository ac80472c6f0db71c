<?php

declare(strict_types=1);

namespace Weft\Bench\Report;

use Weft\Bench\Bus;
use Weft\Bench\Repeats;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** Who takes how much CPU for a message, a request or a call: the tables of docs/explanation/performance.md. */
final class Costs
{
    private const NOTHING = '–';

    /** @param array<string, array<string, mixed>> $results see {@see Sources::load()} */
    public function __construct(private readonly array $results)
    {
    }

    /** @return array<string, string> Markdown by the name of its place, of the benchmarks that have results */
    public function tables(): array
    {
        $tables = [
            'bus-cpu' => fn (): Table => $this->bus($this->results['bus']),
            'http-cpu' => fn (): Table => self::systems(
                array_filter($this->results['http']['runs'], static fn (array $run): bool => $run['connections'] === 64),
                static fn (array $run): string => "{$run['case']}, {$run['protocol']}",
                'cpu_us_per_request',
            ),
            'grpc-cpu' => fn (): Table => self::systems(
                array_filter($this->results['grpc']['runs'], static fn (array $run): bool => $run['tool'] === 'h2load'),
                static fn (array $run): string => "{$run['call']}, {$run['connections']} connection" . ($run['connections'] === 1 ? '' : 's'),
                'cpu_us_per_call',
            ),
            'pool-cpu' => fn (): Table => $this->pool($this->results['pool']),
            'rinha-cpu' => fn (): Table => self::rinha($this->results['rinha']),
        ];
        $there = array_filter($tables, fn (string $place): bool => isset($this->results[strstr($place, '-', true)]), ARRAY_FILTER_USE_KEY);

        return array_map(static fn (\Closure $table): string => $table()->markdown(), $there);
    }

    /** @param array<string, mixed> $result */
    private function bus(array $result): Table
    {
        $groups = [];
        foreach (array_map(Bus\Run::fromArray(...), $result['runs']) as $run) {
            $groups[$run->contender()][] = $run;
        }
        ksort($groups);
        $rows = array_map(static function (string $contender, array $runs) use ($result): array {
            $repeats = new Repeats($runs);
            $median = static fn (string $number): ?float => $repeats->of($number)?->median;
            $used = [$median('cpu_s'), $median('broker_cpu_s'), $median('database_cpu_s')];
            $each = static fn (?float $seconds): string => $seconds === null ? self::NOTHING : number_format($seconds * 1e6 / $median('rows'));
            $share = $median('seconds') === null ? self::NOTHING : self::percent(array_sum($used) / $median('seconds') / self::cores($result));

            return [$contender, ...array_map($each, $used), $each($median('seconds')), $share];
        }, array_keys($groups), $groups);

        return new Table(['µs for a command and its event', 'CPU of the process', 'of the broker', 'of the database', 'wall time', 'of all cores'], $rows);
    }

    /** @param array<string, mixed> $result */
    private function pool(array $result): Table
    {
        $groups = [];
        foreach ($result['runs'] as $run) {
            $groups["{$run['preset']}, pool " . ($run['pool'] ? 'on' : 'off')][] = $run;
        }
        $each = static fn (array $runs, string $field): ?float => self::median($runs, static fn (array $run): ?float => ($run[$field] ?? null) === null ? null : $run[$field] * 1e6 / $run['requests']);
        $rows = array_map(static function (string $name, array $runs) use ($each, $result): array {
            $rate = self::median($runs, static fn (array $run): ?float => $run['rps']);
            [$server, $database] = [$each($runs, 'cpu_s'), $each($runs, 'database_cpu_s')];

            return [
                $name,
                $server === null ? self::NOTHING : number_format($server),
                $database === null ? self::NOTHING : number_format($database),
                $rate === null ? self::NOTHING : self::percent(($server + $database) / 1e6 * $rate / self::cores($result)),
                $rate === null ? self::NOTHING : self::percent($rate / $runs[0]['ceiling_rps']),
            ];
        }, array_keys($groups), $groups);

        return new Table(['µs for a request', 'CPU of the server', 'of the database', 'of all cores', 'rate, of its ceiling'], $rows);
    }

    /** @param array<string, mixed> $result */
    private static function rinha(array $result): Table
    {
        $header = ['µs for a request'];
        $rows = [];
        foreach ($result['runs'] as $run) {
            array_push($header, "CPU, {$run['inserts']}", 'of its limit');
            foreach ($run['parts'] as $i => $part) {
                $rows[$i] ??= [$part['name']];
                array_push($rows[$i], number_format($part['cpu_s'] * 1e6 / $run['requests']), self::percent($part['mean_cpus'] / $part['cpus']));
            }
        }

        return new Table($header, array_values($rows));
    }

    /**
     * @param array<array-key, array<string, mixed>> $runs
     * @param \Closure(array<string, mixed>): string $load the load of a row
     */
    private static function systems(array $runs, \Closure $load, string $field): Table
    {
        $systems = array_values(array_unique(array_column($runs, 'system')));
        usort($systems, static fn (string $one, string $other): int => [!str_starts_with($one, 'weft'), $one] <=> [!str_starts_with($other, 'weft'), $other]);
        $groups = [];
        foreach ($runs as $run) {
            $groups[$load($run)][$run['system']][] = $run;
        }
        $cell = static function (array $own) use ($field): string {
            $median = self::median($own, static fn (array $run): ?float => $run[$field]);

            return $median === null ? self::NOTHING : number_format($median, 1);
        };

        return new Table(['CPU µs', ...$systems], array_map(
            static fn (string $name, array $bySystem): array => [$name, ...array_map(static fn (string $system): string => $cell($bySystem[$system] ?? []), $systems)],
            array_keys($groups),
            $groups,
        ));
    }

    /**
     * @param list<array<string, mixed>> $runs
     * @param \Closure(array<string, mixed>): ?float $read
     */
    private static function median(array $runs, \Closure $read): ?float
    {
        $values = array_values(array_filter(array_map($read, $runs), static fn (?float $value): bool => $value !== null));

        return $values === [] ? null : Spread::of($values)->median;
    }

    /** @param array<string, mixed> $result */
    private static function cores(array $result): int
    {
        return preg_match('/(\d+) cores/', $result['machine'], $match) ? (int) $match[1] : 1;
    }

    private static function percent(float $share): string
    {
        return sprintf('%.0f %%', $share * 100);
    }
}
