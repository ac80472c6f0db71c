<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\DiskFlush;
use Weft\Bench\Progress;
use Weft\Bench\Program;
use Weft\Bench\Spread;

/**
 * Runs the contenders in turn, round after round, so that a slow minute of the machine hits all of them alike. Each round has an
 * order of its own, the same in every race, so that nobody always follows the same predecessor.
 */
final class Race
{
    /** @var list<float> */
    private array $flushes = [];

    /**
     * @param non-empty-list<Contender> $contenders
     * @param \Closure(Transport): Ground $grounds
     * @param float $timeout seconds for one run
     * @param string $logs folder for the error streams
     */
    public function __construct(
        private readonly array $contenders,
        private readonly \Closure $grounds,
        private readonly int $commands,
        private readonly float $timeout,
        private readonly string $logs,
        private readonly Progress $progress,
    ) {
    }

    /**
     * A contender that fails is recorded and takes part in the next round again.
     *
     * @return list<Run> in the order they ran
     */
    public function run(int $rounds): array
    {
        $runs = [];
        for ($round = 1; $round <= $rounds; ++$round) {
            foreach ($this->order($round) as $contender) {
                $this->flushes[] = $flush = DiskFlush::microseconds($this->logs);
                $this->progress->start(sprintf('%-36s round %d, disk flush %4.0f µs', $contender->name, $round, $flush));
                $runs[] = $run = $this->attempt($contender, "{$this->logs}/{$contender->name}-$round.log");
                $this->progress->finish($run->outcome());
            }
        }

        return $runs;
    }

    /** @return list<Contender> */
    private function order(int $round): array
    {
        return (new \Random\Randomizer(new \Random\Engine\Mt19937($round)))->shuffleArray($this->contenders);
    }

    /** What a disk flush cost before each run, in microseconds. There must have been one. */
    public function flush(): Spread
    {
        return Spread::of($this->flushes);
    }

    private function attempt(Contender $contender, string $log): Run
    {
        try {
            $contender->unavailable === null || throw new BenchmarkException($contender->unavailable);

            return $this->measure($contender, $log);
        } catch (BenchmarkException | \PDOException $failure) {
            return Run::failed($contender, $failure->getMessage(), $log);
        }
    }

    private function measure(Contender $contender, string $log): Run
    {
        $ground = ($this->grounds)($contender->transport);
        $ground->reset();
        $timeline = $ground->timeline();
        $idle = $ground->cpu();
        $usage = Program::run(
            $contender->command,
            $ground->environment() + $this->environment($contender),
            $log,
            $this->timeout,
            function (float $elapsed) use ($timeline): void {
                $this->progress->tick($elapsed);
                $timeline->tick($elapsed);
            },
        );
        $servers = $idle === null ? null : $ground->cpu()?->since($idle);
        $report = Report::parse($usage->output);

        return Run::finished($contender, $this->commands, $usage, $servers, $report, $ground->inspect($report), $timeline->toArray());
    }

    /** @return array<string, string> */
    private function environment(Contender $contender): array
    {
        return [
            'COMMANDS' => (string) $this->commands,
            'PERSISTENT' => $contender->isPersistent() ? '1' : '0',
            'MODE' => $contender->mode->value,
        ];
    }
}
