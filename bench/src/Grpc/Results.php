<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\Failure;
use Weft\Bench\Repeats;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** All runs of a comparison, with their environment. */
final class Results
{
    private const HEADER = ['contender', 'calls/s', 'p50 ms', 'p99 ms', 'CPU µs/call', '× Go', 'RSS MiB', 'errors'];

    /**
     * @param array<string, string> $versions by product
     * @param list<Run> $runs in the order they ran
     */
    public function __construct(public readonly string $machine, public readonly array $versions, public readonly array $runs)
    {
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self($fields['machine'], $fields['versions'], array_map(Run::fromArray(...), $fields['runs']));
    }

    public function save(string $path): void
    {
        $runs = array_map(static fn (Run $run): array => $run->toArray(), $this->runs);
        ResultsFile::save($path, ['machine' => $this->machine, 'versions' => $this->versions, 'runs' => $runs]);
    }

    public function isPerfect(): bool
    {
        return array_filter($this->runs, static fn (Run $run): bool => !$run->isPerfect()) === [];
    }

    /** @return array<string, Table> by preset */
    public function tables(): array
    {
        $groups = [];
        foreach ($this->runs as $run) {
            $groups[$run->preset()][$run->system()][] = $run;
        }

        return array_map(function (array $bySystem): Table {
            ksort($bySystem);
            $go = new Repeats($bySystem['go'] ?? []);
            $rows = array_map(
                static fn (string $system): array => self::row($system, new Repeats($bySystem[$system]), $go),
                array_keys($bySystem),
            );

            return new Table(self::HEADER, $rows);
        }, $groups);
    }

    /** @return array{tables: string, rounds: string, published: string} for the page */
    public function markdown(): array
    {
        $tables = '';
        foreach ($this->tables() as $preset => $table) {
            $tables .= "### $preset\n\n{$table->markdown()}\n";
        }

        $rounds = max(array_count_values(array_map(static fn (Run $run): string => "{$run->system()} {$run->preset()}", $this->runs)));

        return ['tables' => $tables, 'rounds' => (string) $rounds, 'published' => rtrim(Published::table($this->runs)->markdown())];
    }

    /** @return list<string> */
    public function failures(): array
    {
        $failures = [];
        foreach ($this->runs as $run) {
            $run->failure() === null || $failures["{$run->system()}, {$run->preset()}: " . Failure::describe($run->toArray())] = true;
        }

        return array_keys($failures);
    }

    /** @return list<string> */
    private static function row(string $system, Repeats $repeats, Repeats $go): array
    {
        return [
            $repeats->label($system),
            $repeats->spread('rps', 0),
            $repeats->spread('p50_ms', 2),
            $repeats->spread('p99_ms', 2),
            $repeats->spread('cpu_us_per_call', 1),
            $repeats->ratio('cpu_us_per_call', $go),
            $repeats->spread('rss_mib', 0),
            $repeats->sum('errors'),
        ];
    }
}
