<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

/**
 * A progress line that overwrites itself on a terminal and stays quiet elsewhere, and a table.
 */
final class Screen
{
    private const WIDTH = 32;

    private readonly bool $isTerminal;

    /** @param resource $output */
    public function __construct(private $output = \STDOUT)
    {
        $this->isTerminal = \stream_isatty($output);
    }

    public function line(string $text = ''): void
    {
        $this->clear();
        \fwrite($this->output, $text . "\n");
    }

    public function progress(string $phase, int $done, int $total, float $rate): void
    {
        if (!$this->isTerminal) {
            return;
        }
        $filled = (int) \round(self::WIDTH * ($total > 0 ? \min(1.0, $done / $total) : 1.0));
        $bar = \str_repeat('█', $filled) . \str_repeat('░', self::WIDTH - $filled);
        $numbers = \sprintf('%s / %s  %s/s', \number_format($done), \number_format($total), \number_format($rate));
        \fwrite($this->output, \sprintf("\r\e[2K%-10s %s %s", $phase, $bar, $numbers));
    }

    /** @param array<string, string> $rows */
    public function table(array $rows): void
    {
        $this->line();
        $width = \max(\array_map('strlen', \array_keys($rows)));
        foreach ($rows as $name => $value) {
            $this->line(\sprintf("  %-{$width}s  %s", $name, $value));
        }
        $this->line();
    }

    private function clear(): void
    {
        if ($this->isTerminal) {
            \fwrite($this->output, "\r\e[2K");
        }
    }
}
