<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Median, lowest and highest of a few measurements. */
final class Spread
{
    private function __construct(
        public readonly float $median,
        public readonly float $min,
        public readonly float $max,
    ) {
    }

    /** @param non-empty-list<float|int> $values in any order */
    public static function of(array $values): self
    {
        sort($values);
        $middle = intdiv(count($values), 2);
        // The mean of 0.11 and 0.12 is a little below 0.115; versions of PHP print that differently.
        $median = count($values) % 2 === 1 ? $values[$middle] : round(($values[$middle - 1] + $values[$middle]) / 2, 9);

        return new self($median, $values[0], $values[count($values) - 1]);
    }

    /** @param int $decimals digits after the point, 0 to 3 */
    public function format(int $decimals): string
    {
        [$median, $min, $max] = array_map(
            static fn (float $value): string => number_format($value, $decimals),
            [$this->median, $this->min, $this->max],
        );

        return $min === $max ? $median : "{$median} ({$min}–{$max})";
    }
}
