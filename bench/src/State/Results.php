<?php

declare(strict_types=1);

namespace Weft\Bench\State;

use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** What was counted. */
final class Results
{
    /**
     * @param array<string, string> $versions by product
     * @param list<array{framework: string, slots: int, requests: int, users: int, mismatches: int, shared_kernel_requests: int, shared_kernel_mismatches: int, per_s: float}> $runs
     */
    private function __construct(private readonly string $machine, private readonly array $versions, private readonly array $runs)
    {
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self($fields['machine'], $fields['versions'], $fields['runs']);
    }

    /** @return array{table: string, machine: string, versions: string} for the page */
    public function markdown(): array
    {
        $table = new Table(['framework', 'instances', 'users', 'requests', 'saw the state of another', 'of one shared instance', 'requests/s'], array_map(static fn(array $run): array => [
            $run['framework'],
            (string) $run['slots'],
            (string) $run['users'],
            number_format($run['requests']),
            number_format($run['mismatches']),
            number_format($run['shared_kernel_mismatches']) . ' of ' . number_format($run['shared_kernel_requests']),
            number_format($run['per_s'], 1),
        ], $this->runs));

        return ['table' => $table->markdown(), 'machine' => $this->machine, 'versions' => Page::versions($this->versions)];
    }
}
