<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Failure;
use Weft\Bench\Repeats;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** All runs of a comparison, with their environment. */
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

    /** Seconds of each system in each cell of the matrix; what was lost or came twice is the sum over all its runs. */
    public function matrix(): Table
    {
        $groups = $cells = [];
        foreach ($this->runs as $run) {
            $groups[$run->toArray()['system']][$run->cell()][] = $run;
            $cells[$run->cell()] = [$run->toArray()['persistent'], $run->toArray()['confirms']];
        }
        ksort($groups);
        asort($cells);
        $rows = array_map(static function (string $system, array $byCell) use ($cells): array {
            $all = new Repeats(array_merge(...array_values($byCell)));

            return [
                $system,
                ...array_map(static fn (string $cell): string => (new Repeats($byCell[$cell] ?? []))->spread('seconds', 2), array_keys($cells)),
                $all->sum('lost'),
                $all->sum('duplicates'),
            ];
        }, array_keys($groups), $groups);

        return new Table(['contender', ...array_keys($cells), 'lost', 'duplicates'], $rows);
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
        $repeats = new Repeats($runs);
        $go = new Repeats($this->byContender()['go'] ?? []);

        return [
            $repeats->label($contender),
            $repeats->spread('fill_per_s', 0),
            $repeats->spread('commands_per_s', 0),
            $repeats->spread('events_per_s', 0),
            $repeats->spread('seconds', 2),
            $go->ratio('seconds', $repeats),
            $repeats->spread('cpu_s', 1),
            $repeats->spread('broker_cpu_s', 1),
            $repeats->spread('database_cpu_s', 1),
            $repeats->spread('rss_mib', 0),
            $repeats->sum('rows'),
            $repeats->sum('lost'),
            $repeats->sum('duplicates'),
        ];
    }
}
