<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\DiskFlush;
use Weft\Bench\Progress;
use Weft\Bench\Spread;

/**
 * Runs the contenders in turn, round after round, so that a slow minute of the machine hits all of them alike. Each round has an
 * order of its own, the same in every race, so that no contender always follows the same predecessor.
 */
final class Race
{
    /** @var list<float> */
    private array $flushes = [];

    /**
     * @param non-empty-list<Contender> $contenders
     * @param string $logs directory for the error streams
     */
    public function __construct(
        private readonly array $contenders,
        private readonly Turn $turn,
        private readonly string $logs,
        private readonly Progress $progress,
    ) {
    }

    /**
     * A contender that fails is recorded and takes part in the next round again, unless it took too long.
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
                $runs[] = $run = $this->turn->take($contender, "{$this->logs}/{$contender->name}-$round.log", $this->progress->tick(...));
                $this->progress->finish($run->outcome());
            }
        }

        return $runs;
    }

    /** What a disk flush cost before each run, in microseconds. There must have been one. */
    public function flush(): Spread
    {
        return Spread::of($this->flushes);
    }

    /** @return list<Contender> */
    private function order(int $round): array
    {
        return (new \Random\Randomizer(new \Random\Engine\Mt19937($round)))->shuffleArray($this->contenders);
    }
}
