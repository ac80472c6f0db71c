<?php

declare(strict_types=1);

namespace Weft\Bench\Suite;

use Weft\Bench\Duration;

/** Forwards the output of a benchmark and keeps a status line below it: the current run, its duration, and the remaining runs. */
final class Console
{
    private readonly bool $isTerminal;
    private readonly float $started;
    private string $unfinished = '';

    /**
     * @param string $name of the benchmark
     * @param list<string> $left names of those that come after it
     * @param float $expected seconds it is likely to take
     * @param float $expectedLeft seconds those after it are likely to take together
     */
    public function __construct(
        private readonly string $name,
        private readonly array $left,
        private readonly float $expected,
        private readonly float $expectedLeft,
    ) {
        $this->isTerminal = stream_isatty(STDERR);
        $this->started = microtime(true);
        fwrite(STDERR, "\n=== $name, about " . Duration::format($expected) . "{$this->after()}\n");
    }

    public function say(string $text): void
    {
        if (!$this->isTerminal) {
            fwrite(STDERR, $text);

            return;
        }
        $all = $this->unfinished . $text;
        $end = strrpos($all, "\n");
        $this->unfinished = $end === false ? $all : substr($all, $end + 1);
        fwrite(STDERR, "\r\e[K" . ($end === false ? '' : substr($all, 0, $end + 1)) . $this->unfinished . " \e[2m· {$this->line()}\e[0m");
    }

    public function finish(): void
    {
        fwrite(STDERR, ($this->isTerminal ? "\r\e[K" : '') . $this->unfinished . "\n");
    }

    private function line(): string
    {
        $elapsed = microtime(true) - $this->started;

        return sprintf('%s, running for %d s of about %s%s', $this->name, $elapsed, Duration::format($this->expected), $this->after());
    }

    private function after(): string
    {
        return $this->left === [] ? '' : '; then ' . implode(', ', $this->left) . ', about ' . Duration::format($this->expectedLeft);
    }
}
