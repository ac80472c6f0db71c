<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\Percentile;

/** How long requests took: milliseconds by percentile. */
final class Latency
{
    /** What is recorded of a load, 100 being the slowest. */
    public const PERCENTILES = ['10', '25', '50', '75', '90', '95', '99', '99.9', '100'];

    /** @param array<int|string, float> $milliseconds by percentile, ascending; some of {@see self::PERCENTILES} */
    public function __construct(private readonly array $milliseconds)
    {
    }

    /**
     * @param list<int|float> $sorted times in ascending order
     * @param float $unit milliseconds that one of them stands for
     */
    public static function of(array $sorted, float $unit): self
    {
        $milliseconds = [];
        foreach (self::PERCENTILES as $percentile) {
            $milliseconds[$percentile] = Percentile::of($sorted, (float) $percentile) * $unit;
        }

        return new self($milliseconds);
    }

    /** @return float 0 when it is not known */
    public function at(int|string $percentile): float
    {
        return $this->milliseconds[$percentile] ?? 0.0;
    }

    /** @return array<string, float> as in the results file: `p50` and so on, rounded to microseconds */
    public function toArray(): array
    {
        $fields = [];
        foreach ($this->milliseconds as $percentile => $milliseconds) {
            $fields["p$percentile"] = round($milliseconds, 3);
        }

        return $fields;
    }
}
