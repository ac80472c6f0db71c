<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Load over HTTP/2 with prior knowledge by h2load. */
final class H2load
{
    /** It sends due requests every 10 ms per connection: connections opened together send together. */
    private const APART_MS = 101;
    private const STEPS = 10;

    /**
     * @param list<string> $pin a command prefix, such as `taskset -c 1`
     * @param int $seconds of load, at least 1
     * @param int $streams at a time on each connection
     * @param list<string> $options more of its own, such as `--header=te: trailers`
     *
     * @throws BenchmarkException when it fails
     */
    public static function run(string $url, int $connections, int $seconds, array $pin = [], int $streams = 1, array $options = []): Load
    {
        $arguments = ["-c$connections", "-m$streams", "-D$seconds", ...$options, $url];

        return self::logged($pin, $arguments, $seconds + 30.0, static fn (array $begun, array $took, int $good, int $bad): Load => new Load($good, $seconds, self::latency($took), $bad));
    }

    /**
     * The same at a steady rate: connections are opened apart from each other, so that what they send is spread over time. The first
     * second, in which they are opened, does not count.
     *
     * @param float $perSecond requests on all connections together
     * @param list<string> $pin
     * @param list<string> $options
     *
     * @throws BenchmarkException when it fails
     */
    public static function paced(string $url, int $connections, int $seconds, float $perSecond, array $pin = [], int $streams = 1, array $options = []): Load
    {
        $opened = (int) ceil($connections / self::STEPS);
        $begin = intdiv(self::APART_MS * self::STEPS, 1_000) + 1;
        $each = $perSecond / $connections;
        $arguments = [
            "-c$connections", "-m$streams", "--rate=$opened", '--rate-period=' . self::APART_MS . 'ms', sprintf('--rps=%F', $each),
            '-n' . (int) ceil($each * ($begin + $seconds)) * $connections, ...$options, $url,
        ];

        return self::logged($pin, $arguments, $begin + $seconds + 30.0, static function (array $begun, array $took, int $good, int $bad) use ($begin, $seconds): Load {
            $start = min($begun) + $begin * 1_000_000;
            $end = $start + $seconds * 1_000_000;
            $steady = array_filter($took, static fn (int $request): bool => $begun[$request] >= $start && $begun[$request] < $end, ARRAY_FILTER_USE_KEY);

            return new Load(count($steady), $seconds, self::latency($steady), $bad);
        });
    }

    /**
     * @param list<string> $pin
     * @param list<string> $arguments
     * @param \Closure(non-empty-list<int>, non-empty-list<int>, int, int): Load $read when each request began and how long it took, in
     *     microseconds; how many were answered, and how many failed or were not answered by 2xx
     */
    private static function logged(array $pin, array $arguments, float $timeout, \Closure $read): Load
    {
        $log = (string) tempnam(sys_get_temp_dir(), 'weft-h2load');
        try {
            $output = Tool::output([...$pin, 'h2load', '-t1', "--log-file=$log", ...$arguments], $timeout);
            if (!preg_match('/^requests: \d+ total.*?(\d+) succeeded, (\d+) failed, (\d+) errored/m', $output, $requests)) {
                throw new BenchmarkException('h2load printed no summary: ' . substr($output, 0, 500));
            }
            preg_match('/^status codes: (\d+) 2xx/m', $output, $codes);
            [, $succeeded, $failed, $errored] = array_map(intval(...), $requests);
            $unexpected = max(0, $succeeded - (int) ($codes[1] ?? 0));
            [$begun, $took] = self::times($log);

            return $read($begun, $took, $succeeded, $failed + $errored + $unexpected);
        } finally {
            unlink($log);
        }
    }

    /** @param array<int, int> $microseconds */
    private static function latency(array $microseconds): Latency
    {
        sort($microseconds);

        return Latency::of($microseconds, 0.001);
    }

    /** @return array{non-empty-list<int>, non-empty-list<int>} of each request the first and the third field of its line of the log */
    private static function times(string $log): array
    {
        $begun = $took = [];
        foreach (new \SplFileObject($log) as $line) {
            $fields = explode("\t", trim((string) $line));
            if (isset($fields[2])) {
                $begun[] = (int) $fields[0];
                $took[] = (int) $fields[2];
            }
        }

        return $took === [] ? throw new BenchmarkException('h2load has logged no request') : [$begun, $took];
    }
}
