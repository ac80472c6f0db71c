<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks;

use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** What was measured. */
final class Results
{
    /**
     * @param array<string, string> $versions by product
     * @param array<string, array<string, array{weftMib: float, workerMib: float, baseMib: float, workers: int}>> $memory by framework and peer
     * @param list<array{system: string, framework: string, endpoint: string, slots: int, connections: int, per_s: non-empty-list<float>, p99_ms: non-empty-list<float>, rss_mib: float, cpu_us: non-empty-list<float>, errors: int}> $runs
     */
    private function __construct(private readonly string $machine, private readonly array $versions, private readonly array $memory, private readonly array $runs)
    {
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self($fields['machine'], $fields['versions'], $fields['memory'], $fields['runs']);
    }

    /** @return array{tables: string, memory: string, machine: string, versions: string} for the page */
    public function markdown(): array
    {
        $tables = '';
        foreach ($this->groups() as $title => $runs) {
            $tables .= "### $title\n\n{$this->table($runs)->markdown()}\n";
        }
        $memory = new Table(['framework', 'Weft with the most instances, MiB', 'peer', 'each of its workers, MiB', 'the rest of it, MiB', 'workers that fit'], $this->memoryRows());

        return ['tables' => rtrim($tables), 'memory' => rtrim($memory->markdown()), 'machine' => $this->machine, 'versions' => Page::versions($this->versions)];
    }

    /** @return list<list<string>> */
    private function memoryRows(): array
    {
        $rows = [];
        foreach ($this->memory as $framework => $peers) {
            foreach ($peers as $peer => $measured) {
                $rows[] = [$framework, (string) $measured['weftMib'], $peer, (string) $measured['workerMib'], (string) $measured['baseMib'], (string) $measured['workers']];
            }
        }

        return $rows;
    }

    /** @return array<string, list<array<string, mixed>>> runs by framework and endpoint */
    private function groups(): array
    {
        $groups = [];
        foreach ($this->runs as $run) {
            $groups[ucfirst($run['framework']) . ", {$run['endpoint']}"][] = $run;
        }

        return $groups;
    }

    /** @param list<array<string, mixed>> $runs */
    private function table(array $runs): Table
    {
        return new Table(['system', 'instances or workers', 'connections', 'requests/s', 'p99 ms', 'CPU µs each', 'MiB', 'errors'], array_map(static fn(array $run): array => [
            $run['system'],
            (string) $run['slots'],
            (string) $run['connections'],
            Spread::of($run['per_s'])->format(0),
            Spread::of($run['p99_ms'])->format(1),
            Spread::of($run['cpu_us'])->format(0),
            number_format($run['rss_mib'], 0),
            (string) $run['errors'],
        ], $runs));
    }
}
