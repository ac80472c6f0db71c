<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\Failure;
use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** All runs of one comparison, with what they ran on. */
final class Results
{
    private const HEADER = ['contender', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/request', '× Go', 'RSS MiB', 'errors'];

    /**
     * @param array<string, string> $versions by product
     * @param list<Run> $runs in the order they ran
     * @param list<Idle> $idle
     */
    public function __construct(
        public readonly string $machine,
        public readonly array $versions,
        public readonly array $runs,
        public readonly array $idle,
    ) {
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self(
            $fields['machine'],
            $fields['versions'],
            array_map(Run::fromArray(...), $fields['runs']),
            array_map(Idle::fromArray(...), $fields['idle']),
        );
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, [
            'machine' => $this->machine,
            'versions' => $this->versions,
            'runs' => array_map(static fn (Run $run): array => $run->toArray(), $this->runs),
            'idle' => array_map(static fn (Idle $idle): array => $idle->toArray(), $this->idle),
        ]);
    }

    public function isPerfect(): bool
    {
        return array_filter($this->runs, static fn (Run $run): bool => !$run->isPerfect()) === [];
    }

    /** @return array<string, Table> by discipline */
    public function tables(): array
    {
        $tables = [];
        foreach ($this->byDiscipline() as $discipline => $bySystem) {
            $rows = array_map(
                fn (string $system): array => $this->row($system, $bySystem[$system], $bySystem['go'] ?? []),
                array_keys($bySystem),
            );
            $tables[$discipline] = new Table(self::HEADER, $rows);
        }

        return $tables;
    }

    public function idleTable(): Table
    {
        $header = ['contender', 'idle connections', 'KiB each'];

        return new Table($header, array_map(static fn (Idle $idle): array => $idle->row(), $this->idle));
    }

    /** @return array{tables: string, idle: string, rounds: string} for the page */
    public function markdown(): array
    {
        $tables = '';
        foreach ($this->tables() as $discipline => $table) {
            $tables .= "### $discipline\n\n{$table->markdown()}\n";
        }
        $rounds = max(array_map(static fn (array $bySystem): int => max(array_map(count(...), $bySystem)), $this->byDiscipline()));

        return ['tables' => $tables, 'idle' => $this->idleTable()->markdown(), 'rounds' => (string) $rounds];
    }

    /** @return list<string> */
    public function failures(): array
    {
        $failures = [];
        foreach ($this->runs as $run) {
            $run->failure() === null || $failures["{$run->system()}, {$run->discipline()}: " . Failure::describe($run->toArray())] = true;
        }

        return array_keys($failures);
    }

    /** @return array<string, array<string, non-empty-list<Run>>> by discipline and system, both in one order for all */
    private function byDiscipline(): array
    {
        $groups = [];
        foreach ($this->runs as $run) {
            $groups[$run->discipline()][$run->system()][] = $run;
        }
        $order = array_flip(['weft', 'go', 'node', 'php-fpm', 'php-builtin']);
        foreach ($groups as &$group) {
            uksort($group, static fn (string $a, string $b): int => $order[$a] <=> $order[$b]);
        }

        return $groups;
    }

    /**
     * @param non-empty-list<Run> $runs
     * @param list<Run> $go
     *
     * @return list<string>
     */
    private function row(string $system, array $runs, array $go): array
    {
        $failed = count(array_filter($runs, static fn (Run $run): bool => $run->failure() !== null));

        return [
            $failed === 0 ? $system : "$system ($failed of " . count($runs) . ' failed)',
            self::spread($runs, 'rps', 0),
            self::spread($runs, 'p50_ms', 2),
            self::spread($runs, 'p99_ms', 2),
            self::spread($runs, 'cpu_us_per_request', 1),
            self::timesGo($runs, $go),
            self::spread($runs, 'rss_mib', 0),
            number_format(array_sum(self::numbers($runs, 'errors'))),
        ];
    }

    /**
     * Requests per second of CPU, against Go's.
     *
     * @param list<Run> $runs
     * @param list<Run> $go
     */
    private static function timesGo(array $runs, array $go): string
    {
        $own = self::numbers($runs, 'cpu_us_per_request');
        $theirs = self::numbers($go, 'cpu_us_per_request');

        return $own === [] || $theirs === [] || Spread::of($own)->median <= 0.0
            ? '–'
            : sprintf('%.2f', Spread::of($theirs)->median / Spread::of($own)->median);
    }

    /** @param list<Run> $runs */
    private static function spread(array $runs, string $name, int $decimals): string
    {
        $numbers = self::numbers($runs, $name);

        return $numbers === [] ? '–' : Spread::of($numbers)->format($decimals);
    }

    /**
     * @param list<Run> $runs
     *
     * @return list<float|int>
     */
    private static function numbers(array $runs, string $name): array
    {
        $numbers = array_map(static fn (Run $run): float|int|null => $run->number($name), $runs);

        return array_values(array_filter($numbers, static fn (float|int|null $number): bool => $number !== null));
    }
}
