<?php

declare(strict_types=1);

namespace Weft\Bench\Compare;

/**
 * How many times the old measurements the new ones are. The estimate is the median of the ratios of all pairs (Hodges and Lehmann),
 * the interval is what the exact rank-sum test of Mann and Whitney does not reject. Neither supposes a distribution, so one run
 * that was disturbed does not decide.
 */
final class Ratio
{
    public const CONFIDENCE = 0.95;

    /**
     * @param float $low lower end of the interval
     * @param float $high upper end of the interval
     */
    private function __construct(public readonly float $estimate, public readonly float $low, public readonly float $high)
    {
    }

    /**
     * @param list<float|int> $old above 0
     * @param list<float|int> $new above 0
     *
     * @return self|null null where there are too few for an interval: below four on each side, or three and five
     */
    public static function of(array $old, array $new): ?self
    {
        $ratios = [];
        foreach ($new as $numerator) {
            foreach ($old as $denominator) {
                $ratios[] = $numerator / $denominator;
            }
        }
        sort($ratios);
        $outside = self::ranksOutside(count($old), count($new));
        if ($outside === null) {
            return null;
        }
        $count = count($ratios);
        $median = ($ratios[intdiv($count - 1, 2)] + $ratios[intdiv($count, 2)]) / 2;

        return new self($median, $ratios[$outside], $ratios[$count - 1 - $outside]);
    }

    /**
     * How many of the ordered ratios may be left out at each end.
     *
     * @return int|null null when even all of them are not confident enough
     */
    private static function ranksOutside(int $old, int $new): ?int
    {
        $ways = self::ways($old, $new);
        $all = array_sum($ways);
        $outside = null;
        $tail = 0;
        foreach ($ways as $statistic => $number) {
            $tail += $number;
            if (2 * $tail / $all > 1 - self::CONFIDENCE) {
                break;
            }
            $outside = $statistic;
        }

        return $outside;
    }

    /**
     * In how many orders of all measurements each value of the statistic U comes: how many pairs have the new one below the old.
     *
     * @return list<int|float> from U = 0 to old × new
     */
    private static function ways(int $old, int $new): array
    {
        // Gaussian binomial coefficients: the product of (1 - q^(old + i)) / (1 - q^i).
        $ways = array_fill(0, $old * $new + 1, 0);
        $ways[0] = 1;
        for ($i = 1; $i <= $new; ++$i) {
            for ($u = $old * $new; $u >= $old + $i; --$u) {
                $ways[$u] -= $ways[$u - $old - $i];
            }
            for ($u = $i; $u <= $old * $new; ++$u) {
                $ways[$u] += $ways[$u - $i];
            }
        }

        return $ways;
    }
}
