<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Percentiles of the latency of repeated runs, as cells of a table. */
final class LatencyColumns
{
    /**
     * The median of the runs for each column.
     *
     * @param list<array<string, mixed>> $runs as in a results file; those that failed have no `latency_ms`
     * @param list<string> $columns percentiles (`p50`, …, `p100`), and what else the load generator tells (`mean_ms`): nothing where it was not recorded
     *
     * @return list<string>
     */
    public static function of(array $runs, array $columns, int $decimals): array
    {
        return array_map(static function (string $column) use ($runs, $decimals): string {
            $values = array_values(array_filter(array_map(static fn (array $run): int|float|null => $run['latency_ms'][$column] ?? $run['times_ms'][$column] ?? null, $runs), is_numeric(...)));

            return $values === [] ? '–' : number_format(Spread::of($values)->median, $decimals);
        }, $columns);
    }
}
