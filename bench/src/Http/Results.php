<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\Failure;
use Weft\Bench\Repeats;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** All runs of a comparison, with their environment. */
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
        $order = array_flip(['weft', 'weft-pipelined', 'swoole', 'roadrunner', 'frankenphp', 'go', 'node', 'php-fpm', 'php-builtin', 'floor-epoll', 'floor-io_uring']);
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
        $repeats = new Repeats($runs);

        return [
            $repeats->label($system),
            $repeats->spread('rps', 0),
            $repeats->spread('p50_ms', 2),
            $repeats->spread('p99_ms', 2),
            $repeats->spread('cpu_us_per_request', 1),
            $repeats->ratio('cpu_us_per_request', new Repeats($go)),
            $repeats->spread('rss_mib', 0),
            $repeats->sum('errors'),
        ];
    }
}
