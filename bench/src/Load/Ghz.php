<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Load over gRPC by ghz. */
final class Ghz
{
    /**
     * Installs it unless it is there: `scripts/grpc-tools` knows the version.
     *
     * @param string $root the repository
     *
     * @throws BenchmarkException
     */
    public static function install(string $root): self
    {
        passthru(escapeshellarg("$root/scripts/grpc-tools") . ' >&2', $code);
        $programs = glob((getenv('WEFT_VAR') ?: "$root/var") . '/bin/ghz-v*') ?: [];

        return new self($code === 0 && $programs !== [] ? $programs[0] : throw new BenchmarkException("cannot install ghz (code $code): it needs Go and the Go module proxy"));
    }

    public function version(): string
    {
        return explode('ghz-v', $this->program)[1];
    }

    private function __construct(private readonly string $program)
    {
    }

    /**
     * @param string $proto file with the service
     * @param string $method such as `api.Users.Get`
     * @param string $data the request as JSON
     * @param list<string> $pin a command prefix, such as `taskset -c 1`
     *
     * @throws BenchmarkException when it fails
     */
    public function run(
        int $port,
        string $proto,
        string $method,
        string $data,
        int $concurrency,
        int $connections,
        int $requests,
        array $pin,
    ): Load {
        $command = [
            ...$pin, $this->program, '--insecure', "--proto=$proto", "--call=$method", "--data=$data", "--concurrency=$concurrency",
            "--connections=$connections", "--total=$requests", '--format=json', "127.0.0.1:$port",
        ];
        $output = Tool::output($command, 120.0);
        $report = json_decode($output, true);
        isset($report['count'], $report['total']) || throw new BenchmarkException('ghz printed no report: ' . substr($output, 0, 500));
        $nanoseconds = array_column($report['latencyDistribution'] ?? [], 'latency', 'percentage') + [100 => $report['slowest'] ?? 0];

        return new Load(
            $report['count'],
            $report['total'] / 1e9,
            new Latency(array_map(static fn (int|float $time): float => $time / 1e6, $nanoseconds)),
            $report['count'] - ($report['statusCodeDistribution']['OK'] ?? 0),
            ['mean_ms' => ($report['average'] ?? 0) / 1e6, 'fastest_ms' => ($report['fastest'] ?? 0) / 1e6],
        );
    }
}
