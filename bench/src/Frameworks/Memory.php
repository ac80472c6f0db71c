<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks;

/** How many workers of a peer take as much memory as one process of Weft, as measured. */
final class Memory
{
    /**
     * @param float $weftMib of one process with the most instances
     * @param float $workerMib of each further worker
     * @param float $baseMib of the peer without workers; with nginx for PHP-FPM
     * @param int $workers that the peer gets
     */
    private function __construct(public readonly float $weftMib, public readonly float $workerMib, public readonly float $baseMib, public readonly int $workers)
    {
    }

    /** @param array{weftMib: float, workerMib: float, baseMib: float, workers: int} $values as a file of results has them */
    public static function measuredBefore(array $values): self
    {
        return new self($values['weftMib'], $values['workerMib'], $values['baseMib'], $values['workers']);
    }

    /** Two starts of the peer tell what a worker takes, since most of its first one's memory is shared. */
    public static function compare(float $weftMib, int $few, float $fewMib, int $many, float $manyMib): self
    {
        $worker = max(0.1, ($manyMib - $fewMib) / ($many - $few));
        $base = $fewMib - $few * $worker;

        return new self(round($weftMib, 1), round($worker, 1), round($base, 1), max($few, (int) round(($weftMib - $base) / $worker)));
    }
}
