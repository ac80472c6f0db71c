<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\LatencyColumns;
use Weft\Bench\Repeats;
use Weft\Bench\Table;

/** What allsilaevex/swoole-connection-pool has published of its benchmark, beside the same figures of a run here. */
final class Published
{
    /** Requests/s, requests, mean, standard deviation, p50, p75, p90, p99 and longest in ms, errors; each of 10 s. */
    private const FIGURES = [
        '10 queries, pool off' => ['426.94', '4,280', '238.48', '301.25', '103.29', '328.69', '691.90', '1,120.00', '3,060.00', '1,736'],
        '10 queries, pool on' => ['5,642.51', '56,525', '11.33', '1.72', '11.08', '11.86', '12.97', '18.03', '38.38', '0'],
        '20 ms of CPU, pool off' => ['359.81', '3,602', '44.38', '7.88', '40.79', '40.97', '61.12', '61.58', '81.65', '0'],
        '20 ms of CPU, pool on' => ['634.84', '6,357', '25.15', '8.68', '20.44', '20.62', '40.85', '41.14', '61.43', '0'],
        'slow connect, pool on' => ['39,859.03', '402,591', '1.63', '0.88', '1.48', '1.68', '1.99', '3.82', '36.75', '0'],
    ];

    /** @param array<string, non-empty-list<Run>> $groups by label */
    public static function table(array $groups): Table
    {
        $rows = [];
        foreach (self::FIGURES as $label => $figures) {
            $rows[] = [$label, 'published', ...$figures];
            foreach (['Weft here' => $label, 'Swoole here' => str_replace(', pool', ', Swoole, pool', $label)] as $who => $group) {
                $runs = $groups[$group] ?? [];
                if ($runs !== []) {
                    $rows[] = [$label, $who, ...self::measured($runs)];
                }
            }
        }

        return new Table(['preset', 'who', 'requests/s', 'requests', 'mean ms', 'deviation', 'p50', 'p75', 'p90', 'p99', 'longest', 'errors'], $rows);
    }

    /**
     * @param non-empty-list<Run> $runs
     *
     * @return list<string>
     */
    private static function measured(array $runs): array
    {
        $repeats = new Repeats($runs);
        $fields = array_map(static fn (Run $run): array => $run->toArray(), $runs);
        $median = static function (string $name, int $decimals) use ($repeats): string {
            $spread = $repeats->of($name);

            return $spread === null ? '–' : number_format($spread->median, $decimals);
        };

        return [
            $median('rps', 2),
            $median('requests', 0),
            ...LatencyColumns::of($fields, ['mean_ms', 'deviation_ms', 'p50', 'p75', 'p90', 'p99', 'p100'], 2),
            $repeats->sum('errors'),
        ];
    }
}
