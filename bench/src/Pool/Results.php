<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\Failure;
use Weft\Bench\Repeats;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** All runs of the presets, with their environment. */
final class Results
{
    private const HEADER = [
        'preset', 'requests/s', 'of ceiling', 'ceiling', 'p50 ms', 'p99 ms', 'errors', 'CPU s', 'database CPU s', 'published/s', 'published errors',
    ];

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

    public function table(): Table
    {
        $groups = $this->groups();

        return new Table(self::HEADER, array_map(self::row(...), array_keys($groups), $groups));
    }

    /** What the pool is worth, here and in the publication: requests with it over requests without. */
    public function ratios(): Table
    {
        $rows = [];
        foreach ($this->groups() as [$run]) {
            [$with, $without] = [$this->runsOf($run->preset(), true), $this->runsOf($run->preset(), false)];
            if ($with === [] || $without === []) {
                continue;
            }
            $rows[$run->preset()] = [
                $run->preset(),
                (new Repeats($without))->ratio('rps', new Repeats($with)),
                sprintf('%.2f', $with[0]->number('published_rps') / $without[0]->number('published_rps')),
            ];
        }

        return new Table(['preset', 'with a pool / without', 'published'], array_values($rows));
    }

    /** @return array{table: string, ratios: string, published: string} for the page */
    public function markdown(): array
    {
        return [
            'table' => $this->table()->markdown(),
            'ratios' => $this->ratios()->markdown(),
            'published' => rtrim(Published::table($this->groups())->markdown()),
        ];
    }

    /** @return list<string> */
    public function failures(): array
    {
        $failures = [];
        foreach ($this->runs as $run) {
            $run->failure() === null || $failures["{$run->label()}: " . Failure::describe($run->toArray())] = true;
        }

        return array_keys($failures);
    }

    /** @return array<string, non-empty-list<Run>> by label */
    private function groups(): array
    {
        $groups = [];
        foreach ($this->runs as $run) {
            $groups[$run->label()][] = $run;
        }

        return $groups;
    }

    /** @return list<Run> */
    private function runsOf(string $preset, bool $pool): array
    {
        return array_values(array_filter($this->runs, static fn (Run $run): bool => $run->preset() === $preset && $run->pool() === $pool));
    }

    /**
     * @param non-empty-list<Run> $runs
     *
     * @return list<string>
     */
    private static function row(string $label, array $runs): array
    {
        $repeats = new Repeats($runs);
        $rate = $repeats->of('rps')?->median;
        $ceiling = $runs[0]->number('ceiling_rps');

        return [
            $repeats->label($label),
            $repeats->spread('rps', 0),
            $rate === null ? '–' : sprintf('%.0f %%', $rate / $ceiling * 100),
            number_format($ceiling),
            $repeats->spread('p50_ms', 1),
            $repeats->spread('p99_ms', 1),
            $repeats->sum('errors'),
            $repeats->spread('cpu_s', 1),
            $repeats->spread('database_cpu_s', 1),
            number_format($runs[0]->number('published_rps')),
            sprintf('%.1f %%', $runs[0]->number('published_error_percent')),
        ];
    }
}
