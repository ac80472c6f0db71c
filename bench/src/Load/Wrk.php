<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Load over HTTP/1.1 by wrk: each connection sends its next request when it has the answer to the one before. */
final class Wrk
{
    private const REPORT = __DIR__ . '/wrk-report.lua';

    /**
     * @param list<string> $pin a command prefix, such as `taskset -c 1`
     * @param int $seconds of load, at least 1
     *
     * @throws BenchmarkException when it fails
     */
    public static function run(string $url, int $connections, int $seconds, array $pin = [], int $threads = 1): Load
    {
        $threads = min($threads, $connections);
        $command = [...$pin, 'wrk', "-t$threads", "-c$connections", "-d{$seconds}s", '--timeout', '10s', '-s', self::REPORT, $url];
        $output = Tool::output($command, $seconds + 30.0);
        $report = preg_match('/^report (.+)$/m', $output, $match) ? json_decode($match[1], true) : null;
        if (!is_array($report)) {
            throw new BenchmarkException('wrk printed no report: ' . substr($output, 0, 500));
        }

        $latency = new Latency(array_map(static fn (int $us): float => $us / 1000, $report['us_by_percentile']));

        return new Load($report['requests'], $report['us'] / 1e6, $latency, $report['errors'], ['mean_ms' => $report['mean_us'] / 1000, 'deviation_ms' => $report['deviation_us'] / 1000]);
    }
}
