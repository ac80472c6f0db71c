<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Repeated runs and their summary for a table. */
final class Repeats
{
    private const NOTHING = '–';

    /** @param list<Measured> $runs */
    public function __construct(private readonly array $runs)
    {
    }

    /** The name, and how many of the runs failed where some did. */
    public function label(string $name): string
    {
        $failed = count(array_filter($this->runs, static fn (Measured $run): bool => $run->failure() !== null));

        return $failed === 0 ? $name : "$name ($failed of " . count($this->runs) . ' failed)';
    }

    /** Median with lowest and highest. */
    public function spread(string $number, int $decimals): string
    {
        return $this->of($number)?->format($decimals) ?? self::NOTHING;
    }

    public function sum(string $number): string
    {
        return number_format(array_sum($this->numbers($number)));
    }

    /** Another's median divided by this one's; nothing where one of them has none or this one's is 0. */
    public function ratio(string $number, self $other): string
    {
        $own = $this->of($number)?->median;
        $theirs = $other->of($number)?->median;

        return $own === null || $theirs === null || $own <= 0.0 ? self::NOTHING : sprintf('%.2f', $theirs / $own);
    }

    /** @return Spread|null null when no run has this number */
    public function of(string $number): ?Spread
    {
        $numbers = $this->numbers($number);

        return $numbers === [] ? null : Spread::of($numbers);
    }

    /** @return list<float|int> */
    private function numbers(string $name): array
    {
        $numbers = array_map(static fn (Measured $run): float|int|null => $run->number($name), $this->runs);

        return array_values(array_filter($numbers, static fn (float|int|null $number): bool => $number !== null));
    }
}
