<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Fixtures;

use Weft\Bench\Load\Latency;
use Weft\Bench\ResultsFile;

/** Results as the benchmarks write them, with every kind of entry there is. */
final class Results
{
    public static function write(string $directory): void
    {
        foreach (self::all() as $name => $fields) {
            ResultsFile::save("$directory/$name.json", ['machine' => 'a box, 2 cores', 'versions' => ['weft' => '1a2b3c4', 'php' => '8.2.0']] + $fields);
        }
    }

    /** @return array<string, array<string, mixed>> by benchmark */
    private static function all(): array
    {
        return [
            'bus' => ['runs' => self::bus()],
            'bus-matrix' => ['runs' => self::matrix()],
            'bus-noop' => ['runs' => [['contender' => 'weft-client', 'action' => 'consume', 'per_s' => 98_765.4], ['contender' => 'go', 'failed' => 'no Go']]],
            'http' => ['runs' => self::http(), 'idle' => [
                ['system' => 'weft', 'connections' => 10_000, 'kib_per_connection' => 6.5],
                ['system' => 'php-builtin', 'connections' => 10_000, 'kib_per_connection' => null, 'failed' => 'closes every connection'],
            ]],
            'grpc' => ['runs' => self::grpc()],
            'grpc-bounds' => ['runs' => self::bounds()],
            'pool' => ['runs' => self::pool()],
            'rinha' => self::rinha(),
            'scale' => ['runs' => self::scale()],
        ];
    }

    /** @return list<array<string, mixed>> */
    private static function bus(): array
    {
        $runs = [];
        foreach (['plain' => 4.0, 'confirmed' => 5.0, 'safe' => 6.0] as $mode => $seconds) {
            array_push($runs, ...self::busRuns('weft', $mode, 'rabbitmq', $seconds));
        }
        array_push($runs, ...self::busRuns('weft', 'confirmed', 'sqlite', 1.0), ...self::busRuns('weft', 'confirmed', 'postgres', 3.0));
        foreach (['go' => 8.0, 'pure-php' => 16.0, 'symfony-messenger' => 40.0] as $system => $seconds) {
            array_push($runs, ...self::busRuns($system, 'plain', 'rabbitmq', $seconds));
        }

        return $runs;
    }

    /** @return list<array<string, mixed>> three runs: 0.1 s below and above the middle one */
    private static function busRuns(string $system, string $mode, string $transport, float $seconds): array
    {
        $times = range(0, $seconds, $seconds / 20);
        $counts = static fn (float $share): array => array_map(static fn (float $time): int => (int) ($share * 1000 * $time / $seconds), $times);

        return array_map(static fn (float $own): array => [
            'system' => $system,
            'mode' => $mode,
            'transport' => $transport,
            'persistent' => $transport === 'sqlite',
            'confirms' => $mode !== 'plain',
            'seconds' => $own,
            'fill_per_s' => 3000.0 / $own,
            'commands_per_s' => 2000.0 / $own,
            'events_per_s' => 9000.0 / $own,
            'cpu_s' => 0.4 * $own,
            'broker_cpu_s' => $transport === 'sqlite' ? null : 0.3 * $own,
            'database_cpu_s' => $transport === 'sqlite' ? null : 0.2 * $own,
            'rss_mib' => 40.0,
            'phases_s' => ['fill' => 0.5, 'commands' => $own - 1.0, 'events' => 0.5],
            'timeline' => $transport === 'sqlite' ? null : [
                'seconds' => $times,
                'published' => $counts(2),
                'delivered' => $counts(1.9),
                'acknowledged' => $counts(1.8),
            ],
            'rows' => 1000,
            'lost' => 0,
            'duplicates' => 0,
        ], [$seconds - 0.1, $seconds, $seconds + 0.1]);
    }

    /** @return list<array<string, mixed>> */
    private static function matrix(): array
    {
        $runs = [];
        foreach (['weft', 'go', 'pure-php', 'symfony-messenger'] as $system) {
            foreach ([[false, 'plain'], [false, 'confirmed'], [true, 'plain'], [true, 'confirmed']] as [$persistent, $mode]) {
                $runs[] = ['persistent' => $persistent] + self::busRuns($system, $mode, 'rabbitmq', 5.0)[1];
            }
        }

        return $runs;
    }

    /** @return list<array<string, mixed>> */
    private static function http(): array
    {
        $runs = [];
        foreach (['hello' => 1.0, 'query' => 4.0] as $case => $factor) {
            foreach (['http/1.1', 'h2'] as $protocol) {
                foreach ([1, 64, 256] as $connections) {
                    foreach (['weft' => 10.0, 'go' => 12.5, 'php-fpm' => 60.0] as $system => $cost) {
                        $load = ['case' => $case, 'protocol' => $protocol, 'connections' => $connections];
                        $runs[] = ['system' => $system] + $load + self::served($cost * $factor) + ['cpu_us_per_request' => $cost * $factor];
                    }
                }
            }
        }
        $numbers = array_fill_keys(['requests', 'rps', 'p50_ms', 'p99_ms', 'cpu_us_per_request', 'rss_mib', 'errors'], null);
        $runs[] = ['system' => 'node', 'case' => 'hello', 'protocol' => 'http/1.1', 'connections' => 64] + $numbers
            + ['failed' => 'no npm', 'log' => 'bench/out/http-logs/node-1.log'];

        return $runs;
    }

    /** @return list<array<string, mixed>> */
    private static function grpc(): array
    {
        $runs = [];
        foreach (['Get' => 1.0, 'List' => 5.0] as $call => $factor) {
            foreach ([['1,000 calls, ghz', 1, 3.0], ['20,000 calls, ghz', 8, 1.2], ['1 s, h2load', 1, 1.0], ['1 s, h2load', 8, 1.1]] as [$load, $connections, $handicap]) {
                foreach (['weft' => 10.0 * $handicap, 'weft-google-protobuf' => 14.0, 'go' => 16.5, 'node' => 70.0] as $system => $cost) {
                    $runs[] = [
                        'system' => $system,
                        'preset' => "$call, 100 at a time on $connections connections, $load",
                        'tool' => explode(', ', $load)[1],
                        'call' => $call,
                        'concurrency' => 100,
                        'connections' => $connections,
                        'cpu_us_per_call' => $cost * $factor,
                    ] + self::served($cost * $factor);
                }
            }
        }

        return $runs;
    }

    /** @return array<string, array<array-key, mixed>> */
    private static function bounds(): array
    {
        $latency = Latency::of(range(1, 1000), 0.01)->toArray();

        return [
            'streams' => array_map(static fn (int $streams): array => ['streams' => $streams, 'rps' => 9_000.0, 'latency_ms' => $latency], [1, 8, 64]),
            'idle' => ['connections' => 10_000, 'kib_each' => 20.4],
        ];
    }

    /** @return list<array<string, mixed>> */
    private static function pool(): array
    {
        $run = static fn (string $preset, bool $pool, float $rps, float $published): array => [
            'preset' => $preset,
            'pool' => $pool,
            'connections' => 64,
            'ceiling_rps' => 6700.0,
            'published_rps' => $published,
            'published_error_percent' => $pool ? 0.0 : 40.6,
            'cpu_s' => 3.0,
        ] + ['rps' => $rps] + self::served(100.0);

        return [
            $run('10 queries', false, 500.0, 426.94),
            $run('10 queries', true, 5000.0, 5642.51),
            $run('20 ms of CPU', false, 50.0, 359.81),
            $run('20 ms of CPU', true, 95.0, 634.84),
            $run('slow connect', true, 30_000.0, 39_859.03),
        ];
    }

    /** @return array<string, mixed> */
    private static function rinha(): array
    {
        $times = ['requests' => 1000, 'mean_ms' => 1.05, 'p50_ms' => 1, 'p75_ms' => 1, 'p95_ms' => 2, 'p99_ms' => 6, 'max_ms' => 316];
        $times += ['latency_ms' => Latency::of(range(1, 300), 1.0)->toArray()];
        $part = ['cpus' => 0.32, 'memory_limit_mib' => 400, 'cpu_s' => 12.3, 'mean_cpus' => 0.06, 'throttled_s' => 0.0, 'rss_mib' => 36.9, 'peak_memory_mib' => 12.1];

        $run = static fn (string $inserts, int $slowest): array => [
            'inserts' => $inserts,
            'people' => 46_528,
            'expected_people' => 46_528,
            'transactions' => $inserts === 'single' ? 46_528 : 30_000,
            'ko' => 0,
            'failures' => [],
            'p99_ms' => $slowest,
            'kinds' => [['request' => 'create'] + $times, ['request' => 'search'] + $times],
            'parts' => [['name' => 'postgresql'] + $part, ['name' => 'api-1'] + $part, ['name' => 'api-2'] + $part, ['name' => 'nginx'] + $part],
        ] + $times;

        return ['limited' => true, 'scale' => 1.0, 'runs' => [$run('single', 6), $run('shared', 5)]];
    }

    /** @return list<array<string, mixed>> */
    private static function scale(): array
    {
        $runs = [];
        foreach ([1, 10, 100, 500] as $concurrency) {
            foreach ([1, 2] as $round) {
                $runs[] = [
                    'curve' => 'Commands per second against concurrency',
                    'series' => 'weft plain',
                    'x' => $concurrency,
                    'y' => min(8000.0, 900.0 * $concurrency) + $round,
                    'x_label' => 'commands in flight',
                    'y_label' => 'commands per second',
                ];
            }
        }

        return $runs;
    }

    /** @return array<string, mixed> */
    private static function served(float $microseconds): array
    {
        return [
            'requests' => 1000,
            'rps' => 1e6 / $microseconds,
            'p50_ms' => $microseconds / 20,
            'p99_ms' => $microseconds / 5,
            'rss_mib' => 30.0,
            'errors' => 0,
            'latency_ms' => Latency::of(array_map(static fn (int $i): float => $microseconds / (1001 - $i), range(1, 1000)), 1.0)->toArray(),
        ];
    }
}
