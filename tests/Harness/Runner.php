<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** Works a queue of jobs off in several lanes, the longest job first, and adds their results up. */
final class Runner
{
    private readonly float $started;
    private bool $interrupted = false;
    private int $count = 0;

    /**
     * @param list<Lane>             $lanes
     * @param \Closure(string): void $print one line of progress
     */
    public function __construct(private readonly array $lanes, private readonly \Closure $print)
    {
        $this->started = \hrtime(true) / 1e9;
    }

    /** The jobs that run are ended, and {@see run()} returns. */
    public function interrupt(): void
    {
        $this->interrupted = true;
    }

    public function isInterrupted(): bool
    {
        return $this->interrupted;
    }

    /** @param list<Job> $jobs */
    public function run(array $jobs): Result
    {
        \usort($jobs, static fn (Job $a, Job $b): int => $b->expected <=> $a->expected);
        $total = \count($jobs);
        $result = new Result();
        while ($this->count < $total && !$this->interrupted) {
            foreach ($this->lanes as $lane) {
                $finished = $lane->poll();
                if ($finished !== null) {
                    $this->count++;
                    $result->add($finished->result);
                    $finished->job instanceof PhpJob || $result->times[$finished->job->name] = $finished->seconds;
                    $this->report($finished, $total);
                }
                if ($lane->isIdle() && $jobs !== []) {
                    $lane->start(\array_shift($jobs));
                }
            }
            \usleep(20_000);
        }
        foreach ($this->lanes as $lane) {
            $lane->interrupt();
        }

        return $result;
    }

    private function report(Finished $finished, int $total): void
    {
        $seconds = (int) (\hrtime(true) / 1e9 - $this->started);
        $one = $finished->result;
        $state = $one->failed === 0 ? 'ok    ' : 'FAILED';
        ($this->print)(\sprintf(
            '[%3d/%d] %2d:%02d %s %s (%s, %.1f s)',
            $this->count,
            $total,
            \intdiv($seconds, 60),
            $seconds % 60,
            $state,
            $finished->job->name,
            $one->summary(),
            $finished->seconds,
        ));
        foreach ($one->failures as $name => $message) {
            ($this->print)("        failed: $name: " . \mb_strimwidth((string) \preg_replace('/\s+/', ' ', $message), 0, 300, '…'));
        }
    }
}
