<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** The load with each way to insert. */
final class Results
{
    /**
     * @param array<string, string> $versions by product, and PostgreSQL's settings
     * @param float $scale 1 for the whole load
     * @param non-empty-list<Run> $runs
     */
    public function __construct(
        public readonly string $machine,
        private readonly array $versions,
        private readonly bool $limited,
        private readonly float $scale,
        public readonly array $runs,
    ) {
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self($fields['machine'], $fields['versions'], $fields['limited'], $fields['scale'], array_map(Run::fromArray(...), $fields['runs']));
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, [
            'machine' => $this->machine,
            'versions' => $this->versions,
            'limited' => $this->limited,
            'scale' => round($this->scale, 4),
            'runs' => array_map(static fn (Run $run): array => $run->fields, $this->runs),
        ]);
    }

    public function isPerfect(): bool
    {
        return array_filter($this->runs, static fn (Run $run): bool => !$run->isPerfect()) === [];
    }

    public function limits(): string
    {
        return $this->limited ? 'within 1.5 CPU and 3.0 GB' : 'without limits';
    }

    /** What has been published of applications by the same load and within the same limits, beside these runs. */
    public function publishedTable(): Table
    {
        return new Table(['who', 'machine', 'requests', 'KO', 'people', 'seconds', 'requests/s', 'mean ms', 'p50', 'p75', 'p95', 'p99', 'max'], [
            ['Laravel, Octane, Swoole', 'Ryzen 4750U, 16 GB', '114,991', '0', '46,576', '229', '499.96', '4,458', '1,269', '8,503', '15,657', '17,033', '17,585'],
            ['Laravel, Octane, Swoole', 'Ryzen 5900X, 32 GB', '102,122', '20,409', '33,707', '228', '445.9', '–', '7,221', '–', '18,996', '19,882', '–'],
            ['Laravel, Octane, Swoole, later', 'Ryzen 5900X, 32 GB', '–', '–', '46,576', '–', '–', '3', '–', '–', '–', '44', '133'],
            ['Elixir', 'Ryzen 5900X, 32 GB', '114,991', '0', '46,576', '205', '–', '–', '–', '–', '–', '2', '–'],
            ['Go', 'Ryzen 5900X, 32 GB', '114,991', '0', '46,576', '205', '–', '–', '–', '–', '–', '1', '–'],
            ['Go', 'Ryzen 4750U, 16 GB', '–', '–', '–', '–', '–', '–', '–', '–', '–', '2', '41'],
            ['winner of the contest: Rust, Redis', 't3a.xlarge', '112,833', '3,140', '44,936', '–', '512.9', '–', '26', '–', '–', '17,418', '–'],
            ...array_map(static fn (Run $run): array => $run->publishedRow(), $this->runs),
        ]);
    }

    /** @return array<string, string> for the page */
    public function markdown(): array
    {
        return [
            'limits' => $this->limits(),
            'summary' => implode("\n", array_map(static fn (Run $run): string => '- ' . ucfirst($run->summary()) . '.', $this->runs)),
            'machine' => $this->machine,
            'versions' => Page::versions($this->versions),
            'published' => rtrim($this->publishedTable()->markdown()),
            'requests' => rtrim($this->each(static fn (Run $run): Table => $run->requestTable())),
            'parts' => rtrim($this->each(static fn (Run $run): Table => $run->partTable())),
        ];
    }

    /** @param \Closure(Run): Table $table */
    private function each(\Closure $table): string
    {
        return implode("\n", array_map(
            static fn (Run $run): string => ucfirst($run->inserts()->title()) . ":\n\n" . $table($run)->markdown(),
            $this->runs,
        ));
    }
}
