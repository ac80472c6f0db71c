<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\Failure;
use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** All runs of one comparison, with what they ran on. */
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
            $go = self::numbers($bySystem['go'] ?? [], 'cpu_us_per_call');
            $rows = array_map(
                static fn (string $system): array => self::row($system, $bySystem[$system], $go),
                array_keys($bySystem),
            );

            return new Table(self::HEADER, $rows);
        }, $groups);
    }

    /** @return array{tables: string} for the page */
    public function markdown(): array
    {
        $tables = '';
        foreach ($this->tables() as $preset => $table) {
            $tables .= "### $preset\n\n{$table->markdown()}\n";
        }

        return ['tables' => $tables];
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

    /**
     * @param non-empty-list<Run> $runs
     * @param list<float|int> $go CPU of Go's runs
     *
     * @return list<string>
     */
    private static function row(string $system, array $runs, array $go): array
    {
        $failed = count(array_filter($runs, static fn (Run $run): bool => $run->failure() !== null));
        $own = self::numbers($runs, 'cpu_us_per_call');
        $comparable = $own !== [] && $go !== [] && Spread::of($own)->median > 0.0;

        return [
            $failed === 0 ? $system : "$system ($failed of " . count($runs) . ' failed)',
            self::spread($runs, 'rps', 0),
            self::spread($runs, 'p50_ms', 2),
            self::spread($runs, 'p99_ms', 2),
            self::spread($runs, 'cpu_us_per_call', 1),
            $comparable ? sprintf('%.2f', Spread::of($go)->median / Spread::of($own)->median) : '–',
            self::spread($runs, 'rss_mib', 0),
            number_format(array_sum(self::numbers($runs, 'errors'))),
        ];
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
