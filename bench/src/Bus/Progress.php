<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** Says on the error stream what runs, what came out and what is still to come. */
final class Progress
{
    private int $done = 0;
    private float $started;
    private string $label = '';
    private int $shown = -1;

    /** @param int $total runs that will be made */
    public function __construct(private readonly int $total, private readonly bool $isTerminal)
    {
        $this->started = microtime(true);
    }

    /** @param float $flush microseconds of a disk flush just now */
    public function start(string $contender, int $round, float $flush): void
    {
        $this->label = sprintf('[%2d/%d] %-18s round %d, disk flush %4.0f µs', $this->done + 1, $this->total, $contender, $round, $flush);
        $this->shown = -1;
        if (!$this->isTerminal) {
            fwrite(STDERR, $this->label);
        }
    }

    public function tick(float $elapsed): void
    {
        if ($this->isTerminal && (int) $elapsed !== $this->shown) {
            $this->shown = (int) $elapsed;
            fwrite(STDERR, "\r\e[K{$this->label}  running for {$this->shown} s");
        }
    }

    public function finish(Run $run): void
    {
        ++$this->done;
        fwrite(STDERR, ($this->isTerminal ? "\r\e[K{$this->label}" : '') . '  ' . self::outcome($run) . $this->remaining() . "\n");
    }

    private static function outcome(Run $run): string
    {
        return match (true) {
            $run->failure() !== null => "FAILED: {$run->failure()}",
            !$run->isPerfect() => sprintf('WRONG: lost %d, duplicates %d', $run->number('lost'), $run->number('duplicates')),
            default => sprintf('%.2f s, %s commands/s', $run->number('seconds'), number_format($run->number('commands_per_s') ?? 0)),
        };
    }

    private function remaining(): string
    {
        $left = $this->total - $this->done;
        $minutes = (microtime(true) - $this->started) / $this->done * $left / 60;

        return $left === 0 ? '' : sprintf('; %d to go, about %.0f min', $left, ceil($minutes));
    }
}
