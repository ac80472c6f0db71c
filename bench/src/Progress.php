<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Reports progress on stderr: the current run, results and remaining runs. */
final class Progress
{
    private readonly float $started;
    private readonly bool $isTerminal;
    private int $done = 0;
    private string $label = '';
    private int $shown = -1;

    /** @param int $total turns that will be taken */
    public function __construct(private readonly int $total)
    {
        $this->started = microtime(true);
        $this->isTerminal = stream_isatty(STDERR);
    }

    public function start(string $what): void
    {
        $width = strlen((string) $this->total);
        $this->label = sprintf("[%{$width}d/%d] %s", $this->done + 1, $this->total, $what);
        $this->shown = -1;
        fwrite(STDERR, $this->label);
    }

    /** @param float $elapsed seconds since the start of the turn */
    public function tick(float $elapsed): void
    {
        if ($this->isTerminal && (int) $elapsed !== $this->shown) {
            $this->shown = (int) $elapsed;
            fwrite(STDERR, "\r\e[K{$this->label}  running for {$this->shown} s");
        }
    }

    public function finish(string $outcome): void
    {
        ++$this->done;
        fwrite(STDERR, ($this->isTerminal ? "\r\e[K{$this->label}" : '') . "  $outcome{$this->remaining()}\n");
    }

    private function remaining(): string
    {
        $left = $this->total - $this->done;
        $seconds = (microtime(true) - $this->started) / $this->done * $left;

        return $left === 0 ? '' : sprintf('; %d to go, about %s', $left, Duration::format($seconds));
    }
}
