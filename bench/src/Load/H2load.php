<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Load over HTTP/2 with prior knowledge by h2load. */
final class H2load
{
    /**
     * @param list<string> $pin command that is put before it, such as `taskset -c 1`
     * @param int $seconds of load, at least 1
     * @param int $streams at a time on each connection
     * @param list<string> $options more of its own, such as `--header=te: trailers`
     *
     * @throws BenchmarkException when it fails
     */
    public static function run(string $url, int $connections, int $seconds, array $pin = [], int $streams = 1, array $options = []): Load
    {
        $log = (string) tempnam(sys_get_temp_dir(), 'weft-h2load');
        $command = [...$pin, 'h2load', '-t1', "-c$connections", "-m$streams", "-D$seconds", "--log-file=$log", ...$options, $url];
        try {
            return self::read(Tool::output($command, $seconds + 30.0), $log, $seconds);
        } finally {
            unlink($log);
        }
    }

    private static function read(string $output, string $log, int $seconds): Load
    {
        if (!preg_match('/^requests: \d+ total.*?(\d+) succeeded, (\d+) failed, (\d+) errored/m', $output, $requests)) {
            throw new BenchmarkException('h2load printed no summary: ' . substr($output, 0, 500));
        }
        preg_match('/^status codes: (\d+) 2xx/m', $output, $good);
        [, $succeeded, $failed, $errored] = $requests;
        $times = self::microseconds($log);
        $unexpected = max(0, (int) $succeeded - (int) ($good[1] ?? 0));

        return new Load(
            (int) $succeeded,
            $seconds,
            Latency::of($times, 0.001),
            (int) $failed + (int) $errored + $unexpected,
        );
    }

    /** @return list<int> time of each request: the third field of each line of the log */
    private static function microseconds(string $log): array
    {
        $times = [];
        foreach (new \SplFileObject($log) as $line) {
            $fields = explode("\t", trim((string) $line));
            if (isset($fields[2])) {
                $times[] = (int) $fields[2];
            }
        }
        sort($times);

        return $times;
    }
}
