<?php

declare(strict_types=1);

namespace Weft\Bench\Hooks;

use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** What was measured: seconds of waits, the cost of a request, and servers under load. Each figure is a list, one per round. */
final class Results
{
    /**
     * @param array<string, string> $versions by product
     * @param list<array{system: string, client: string, tasks: int, wait_ms: int, connect_s?: non-empty-list<float>, seconds: non-empty-list<float>}> $waits
     * @param list<array{system: string, client: string, tasks: int, per_s: non-empty-list<float>, cpu_us: non-empty-list<float>}> $cost
     * @param list<array{system: string, load: string, connections: int, per_s: non-empty-list<float>, cpu_us: non-empty-list<float>, p50_ms: non-empty-list<float>, p99_ms: non-empty-list<float>, errors: int}> $http
     */
    public function __construct(
        public readonly string $machine,
        private readonly array $versions,
        private readonly array $waits,
        private readonly array $cost,
        private readonly array $http,
    ) {
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self($fields['machine'], $fields['versions'], $fields['runs']['waits'], $fields['runs']['cost'], $fields['runs']['http']);
    }

    /** @return array{tables: string, machine: string, versions: string} for the page */
    public function markdown(): array
    {
        $tables = '';
        foreach ($this->tables() as $title => $table) {
            $tables .= "## $title\n\n{$table->markdown()}\n";
        }

        return ['tables' => rtrim($tables), 'machine' => $this->machine, 'versions' => Page::versions($this->versions)];
    }

    /** Medians, and the rounds under `rounds`. */
    public function save(string $path): void
    {
        $rows = ['waits' => $this->waits, 'cost' => $this->cost, 'http' => $this->http];
        $medians = array_map(static fn (array $list): array => array_map(
            static fn (array $row): array => array_map(static fn (mixed $value): mixed => is_array($value) ? Spread::of($value)->median : $value, $row),
            $list,
        ), $rows);
        ResultsFile::save($path, ['machine' => $this->machine, 'versions' => $this->versions] + $medians + ['runs' => $rows]);
    }

    /** @return array<string, Table> by title; without the parts that were not measured */
    public function tables(): array
    {
        return array_filter([
            'Waits of 200 ms' => $this->waits === [] ? null : new Table(['client', 'system', 'waits', 'connecting, s', 'seconds'], array_map(static fn (array $row): array => [
                $row['client'], $row['system'], (string) $row['tasks'], isset($row['connect_s']) ? Spread::of($row['connect_s'])->format(2) : '–', Spread::of($row['seconds'])->format(2),
            ], $this->waits)),
            'The smallest request' => $this->cost === [] ? null : new Table(['client', 'system', 'tasks', 'requests/s', 'CPU µs each'], array_map(static fn (array $row): array => [
                $row['client'], $row['system'], (string) $row['tasks'], Spread::of($row['per_s'])->format(0), Spread::of($row['cpu_us'])->format(1),
            ], $this->cost)),
            'Servers' => $this->http === [] ? null : new Table(['load', 'system', 'connections', 'requests/s', 'CPU µs', 'p50 ms', 'p99 ms', 'errors'], array_map(static fn (array $row): array => [
                $row['load'], $row['system'], (string) $row['connections'], Spread::of($row['per_s'])->format(0), Spread::of($row['cpu_us'])->format(1),
                Spread::of($row['p50_ms'])->format(2), Spread::of($row['p99_ms'])->format(2), (string) $row['errors'],
            ], $this->http)),
        ]);
    }
}
