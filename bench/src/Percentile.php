<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Percentiles by the nearest rank. */
final class Percentile
{
    /**
     * @param list<int|float> $sorted in ascending order
     * @param float $percent above 0, at most 100
     *
     * @return float 0 when there are no values
     */
    public static function of(array $sorted, float $percent): float
    {
        return $sorted === [] ? 0.0 : (float) $sorted[max(0, (int) ceil(count($sorted) * $percent / 100) - 1)];
    }
}
