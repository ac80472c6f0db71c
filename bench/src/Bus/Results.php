<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Failure;
use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** All runs of one comparison, with what they ran on. */
final class Results
{
    private const HEADER = [
        'contender', 'fill/s', 'commands/s', 'events/s', 'seconds', '× Go', 'CPU s', 'broker CPU s',
        'database CPU s', 'RSS MiB', 'rows', 'lost', 'duplicates',
    ];

    /**
     * @param array<string, string> $versions by product
     * @param list<Run> $runs in the order they ran
     */
    public function __construct(
        public readonly string $machine,
        public readonly array $versions,
        public readonly array $runs,
    ) {
    }

    /** @throws BenchmarkException when the file is not there or not a results file */
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

    /** @return list<string> */
    public function failures(): array
    {
        $failed = array_filter($this->runs, static fn (Run $run): bool => $run->failure() !== null);

        return array_values(array_map(
            static fn (Run $run): string => "{$run->contender()}: " . Failure::describe($run->toArray()),
            $failed,
        ));
    }

    /** Rows, lost and duplicates are sums over the runs of a contender, everything else is the median with lowest and highest. */
    public function table(): Table
    {
        $rows = array_map($this->row(...), array_keys($this->byContender()), $this->byContender());

        return new Table(self::HEADER, $rows);
    }

    /** Seconds of each system in each cell of the matrix. */
    public function matrix(): Table
    {
        $groups = $cells = [];
        foreach ($this->runs as $run) {
            $groups[$run->toArray()['system']][$run->cell()][] = $run;
            $cells[$run->cell()] = [$run->toArray()['persistent'], $run->toArray()['confirms']];
        }
        ksort($groups);
        asort($cells);
        $rows = array_map(static fn (string $system, array $byCell): array => [
            $system,
            ...array_map(static fn (string $cell): string => self::spread($byCell[$cell] ?? [], 'seconds', 2), array_keys($cells)),
        ], array_keys($groups), $groups);

        return new Table(['contender', ...array_keys($cells)], $rows);
    }

    /** @return array<string, non-empty-list<Run>> in the order of the first round */
    public function byContender(): array
    {
        $groups = [];
        foreach ($this->runs as $run) {
            $groups[$run->contender()][] = $run;
        }

        return $groups;
    }

    /**
     * @param non-empty-list<Run> $runs
     *
     * @return list<string>
     */
    private function row(string $contender, array $runs): array
    {
        $failed = count(array_filter($runs, static fn (Run $run): bool => $run->failure() !== null));

        return [
            $failed === 0 ? $contender : "$contender ($failed of " . count($runs) . ' failed)',
            self::spread($runs, 'fill_per_s', 0),
            self::spread($runs, 'commands_per_s', 0),
            self::spread($runs, 'events_per_s', 0),
            self::spread($runs, 'seconds', 2),
            $this->ratioToGo($runs),
            self::spread($runs, 'cpu_s', 1),
            self::spread($runs, 'broker_cpu_s', 1),
            self::spread($runs, 'database_cpu_s', 1),
            self::spread($runs, 'rss_mib', 0),
            self::sum($runs, 'rows'),
            self::sum($runs, 'lost'),
            self::sum($runs, 'duplicates'),
        ];
    }

    /** @param list<Run> $runs */
    private function ratioToGo(array $runs): string
    {
        $seconds = self::numbers($runs, 'seconds');
        $go = self::numbers($this->byContender()['go'] ?? [], 'seconds');

        return $seconds === [] || $go === [] ? '–' : sprintf('%.2f', Spread::of($seconds)->median / Spread::of($go)->median);
    }

    /** @param list<Run> $runs */
    private static function spread(array $runs, string $name, int $decimals): string
    {
        $numbers = self::numbers($runs, $name);

        return $numbers === [] ? '–' : Spread::of($numbers)->format($decimals);
    }

    /** @param list<Run> $runs */
    private static function sum(array $runs, string $name): string
    {
        return number_format(array_sum(self::numbers($runs, $name)));
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
