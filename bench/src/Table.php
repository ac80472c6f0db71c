<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A table of text cells, printed for a terminal or for Markdown. The first column is aligned left, the others right. */
final class Table
{
    /**
     * @param list<string> $header
     * @param list<list<string>> $rows each as long as the header
     */
    public function __construct(private readonly array $header, private readonly array $rows)
    {
    }

    public function text(): string
    {
        $widths = $this->widths();
        $lines = array_map(fn (array $row): string => rtrim(implode('  ', $this->pad($row, $widths))), $this->lines());

        return implode("\n", $lines) . "\n";
    }

    public function markdown(): string
    {
        $widths = $this->widths();
        $lines = array_map(fn (array $row): string => '| ' . implode(' | ', $this->pad($row, $widths)) . ' |', $this->lines());
        $rule = array_map(static fn (int $width): string => str_repeat('-', $width + 1) . ':', $widths);
        $rule[0] = str_repeat('-', $widths[0] + 2);
        array_splice($lines, 1, 0, '|' . implode('|', $rule) . '|');

        return implode("\n", $lines) . "\n";
    }

    /** @return list<list<string>> */
    private function lines(): array
    {
        return [$this->header, ...$this->rows];
    }

    /** @return list<int> */
    private function widths(): array
    {
        $columns = array_map(fn (int $column): array => array_column($this->lines(), $column), array_keys($this->header));

        return array_map(static fn (array $cells): int => max(array_map(mb_strlen(...), $cells)), $columns);
    }

    /**
     * @param list<string> $row
     * @param list<int> $widths
     *
     * @return list<string>
     */
    private function pad(array $row, array $widths): array
    {
        $padded = [];
        foreach ($row as $column => $cell) {
            $space = str_repeat(' ', $widths[$column] - mb_strlen($cell));
            $padded[] = $column === 0 ? $cell . $space : $space . $cell;
        }

        return $padded;
    }
}
