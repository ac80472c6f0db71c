<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\LatencyColumns;
use Weft\Bench\Repeats;
use Weft\Bench\Table;

/** What makise-co/grpc-server has published of itself by ghz, beside the same figures of a run here. */
final class Published
{
    /** Calls/s; mean; fastest, p10, p25, p50, p75, p90, p95, p99 and slowest in ms: by preset. */
    private const FIGURES = [
        'Get, 100 at a time on 1 connection, 1,000 calls, ghz' => ['23,467', '3.58', '2.16', '2.70', '3.06', '3.59', '4.00', '4.48', '4.66', '5.32', '5.57'],
        'Get, 250 at a time on 1 connection, 10,000 calls, ghz' => ['27,808', '8.66', '0.55', '4.00', '5.10', '7.65', '10.62', '14.59', '17.37', '24.76', '52.35'],
        'Get, 500 at a time on 1 connection, 10,000 calls, ghz' => ['28,125', '16.99', '0.55', '4.03', '5.68', '13.68', '22.57', '33.12', '42.20', '62.16', '159.87'],
        'List, 100 at a time on 1 connection, 1,000 calls, ghz' => ['11,375', '7.99', '4.18', '6.20', '7.12', '8.18', '9.11', '9.60', '9.78', '10.09', '10.37'],
        'List, 250 at a time on 1 connection, 10,000 calls, ghz' => ['13,326', '18.41', '3.85', '9.26', '10.29', '16.72', '23.26', '30.32', '35.79', '48.22', '81.14'],
        'List, 500 at a time on 1 connection, 10,000 calls, ghz' => ['13,197', '36.62', '6.96', '9.19', '11.03', '31.66', '50.98', '72.58', '89.31', '128.17', '287.87'],
    ];

    /** @param list<Run> $runs of all contenders */
    public static function table(array $runs): Table
    {
        $rows = [];
        foreach (self::FIGURES as $preset => $figures) {
            $call = str_replace([' on 1 connection', ', ghz'], '', $preset);
            $rows[] = [$call, 'published', ...$figures];
            foreach (['weft', 'go'] as $system) {
                $own = array_values(array_filter($runs, static fn (Run $run): bool => $run->preset() === $preset && $run->system() === $system));
                if ($own !== []) {
                    $fields = array_map(static fn (Run $run): array => $run->toArray(), $own);
                    $rate = (new Repeats($own))->of('rps')?->median;
                    $rows[] = [$call, "$system here", $rate === null ? '–' : number_format($rate), ...LatencyColumns::of($fields, ['mean_ms', 'fastest_ms', 'p10', 'p25', 'p50', 'p75', 'p90', 'p95', 'p99', 'p100'], 2)];
                }
            }
        }

        return new Table(['call', 'who', 'calls/s', 'mean ms', 'fastest', 'p10', 'p25', 'p50', 'p75', 'p90', 'p95', 'p99', 'slowest'], $rows);
    }
}
