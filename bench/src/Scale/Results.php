<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

use Weft\Bench\Failure;
use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Spread;
use Weft\Bench\Table;

/** All points of all curves, with their environment. */
final class Results
{
    /**
     * @param array<string, string> $versions by product
     * @param list<array<string, mixed>> $runs in the order they ran
     */
    public function __construct(public readonly string $machine, public readonly array $versions, public readonly array $runs)
    {
    }

    /** @return array<string, mixed> a point as in the results file */
    public static function run(Point $point, string $series, float $y): array
    {
        return ['curve' => $point->curve->title(), 'series' => $series, 'x' => $point->x, 'y' => round($y, 3)] + self::labels($point);
    }

    /** @return array<string, mixed> a point as in the results file */
    public static function failed(Point $point, string $reason, string $log): array
    {
        return ['curve' => $point->curve->title(), 'series' => $point->series, 'x' => $point->x, 'y' => null] + self::labels($point)
            + ['failed' => $reason, 'log' => $log];
    }

    public static function load(string $path): self
    {
        $fields = ResultsFile::load($path);

        return new self($fields['machine'], $fields['versions'], $fields['runs']);
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, ['machine' => $this->machine, 'versions' => $this->versions, 'runs' => $this->runs]);
    }

    /** @return array{tables: string, machine: string, versions: string} for the page */
    public function markdown(): array
    {
        $tables = '';
        foreach ($this->tables() as $curve => $table) {
            $tables .= "## $curve\n\n{$table->markdown()}\n";
        }

        return ['tables' => $tables, 'machine' => $this->machine, 'versions' => Page::versions($this->versions)];
    }

    /** @return list<string> */
    public function failures(): array
    {
        return array_values(array_map(
            static fn (array $run): string => "{$run['curve']}, {$run['series']}, {$run['x']}: " . Failure::describe($run),
            array_filter($this->runs, static fn (array $run): bool => isset($run['failed'])),
        ));
    }

    public function isPerfect(): bool
    {
        return $this->failures() === [];
    }

    /** @return array<string, Table> by curve, a row for each value and a column for each line */
    public function tables(): array
    {
        $curves = [];
        foreach ($this->runs as $run) {
            $curves[$run['curve']][] = $run;
        }

        return array_map(self::table(...), $curves);
    }

    /** @param non-empty-list<array<string, mixed>> $runs */
    private static function table(array $runs): Table
    {
        $series = array_values(array_unique(array_column($runs, 'series')));
        $values = array_unique(array_column($runs, 'x'));
        sort($values);
        $rows = array_map(static fn (int $x): array => [
            number_format($x),
            ...array_map(static fn (string $line): string => self::cell($runs, $line, $x), $series),
        ], $values);

        return new Table([$runs[0]['x_label'], ...array_map(static fn (string $line): string => "$line, {$runs[0]['y_label']}", $series)], $rows);
    }

    /** @param list<array<string, mixed>> $runs */
    private static function cell(array $runs, string $series, int $x): string
    {
        $own = array_filter($runs, static fn (array $run): bool => $run['series'] === $series && $run['x'] === $x && $run['y'] !== null);
        $numbers = array_values(array_column($own, 'y'));

        return $numbers === [] ? '–' : Spread::of($numbers)->format(max($numbers) < 100 ? 2 : 0);
    }

    /** @return array{x_label: string, y_label: string, less_is_better: bool} */
    private static function labels(Point $point): array
    {
        return array_combine(['x_label', 'y_label'], $point->curve->labels()) + ['less_is_better' => $point->curve->lessIsBetter()];
    }
}
