<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use function Weft\delay;

/** What is broken in a run, in the order and after the pauses that the seed decides. */
final class Faults
{
    /** Kills of a worker, for each of the other faults. */
    private const KILLS = 3;
    private const KILL = 'worker_kill';

    /** Seconds that a long fault takes. */
    private const SECONDS = 10.0;

    /** @var list<string> */
    private readonly array $plan;

    /** @var array<string, int> how many of each there were */
    private array $done = [];

    /** When the current one began; 0 when there are no more. */
    private float $since = 0.0;

    /** @param int $rounds how often each comes */
    public function __construct(private readonly Ground $ground, private readonly int $workers, int $rounds, private readonly History $history)
    {
        $plan = [];
        for ($round = 0; $round < $rounds; ++$round) {
            array_push($plan, ...array_keys($ground->faults()));
            array_push($plan, ...array_fill(0, self::KILLS, self::KILL));
        }
        for ($i = count($plan) - 1; $i > 0; --$i) {
            $j = mt_rand(0, $i);
            [$plan[$i], $plan[$j]] = [$plan[$j], $plan[$i]];
        }
        $this->plan = $plan;
        $this->since = microtime(true);
    }

    public function run(Fleet $fleet): void
    {
        $faults = $this->ground->faults();
        foreach ($this->plan as $name) {
            $this->since = microtime(true);
            [$pause, $place] = [mt_rand(200, 900) / 1000, mt_rand(0, $this->workers - 1)];
            delay($pause);
            $this->history->note("{$name} …");
            $what = $name === self::KILL ? self::kill($fleet, $place) : $faults[$name]();
            $this->history->note("… {$what}");
            $this->done[$name] = ($this->done[$name] ?? 0) + 1;
        }
        $this->since = 0.0;
    }

    /** What part of them is over, from 0 to 1; grows by time during each, and is INF when there are no more. */
    public function progress(): float
    {
        if ($this->since === 0.0) {
            return INF;
        }
        $part = min(1.0, (microtime(true) - $this->since) / self::SECONDS);

        return (array_sum($this->done) + $part) / count($this->plan);
    }

    /** @return array<string, int> how many of each there were */
    public function done(): array
    {
        return $this->done;
    }

    private static function kill(Fleet $fleet, int $place): string
    {
        $fleet->kill($place);

        return "worker at place {$place} killed";
    }
}
