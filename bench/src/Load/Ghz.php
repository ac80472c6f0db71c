<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Load over gRPC by ghz. */
final class Ghz
{
    public const VERSION = 'v0.120.0';

    /**
     * Installs ghz from the Go module proxy, in this version, unless it is there.
     *
     * @param string $folder where it is put
     *
     * @throws BenchmarkException
     */
    public static function install(string $folder): self
    {
        $program = "$folder/ghz";
        if (!str_contains((string) @shell_exec(escapeshellarg($program) . ' --version 2>&1'), substr(self::VERSION, 1))) {
            $command = 'GOBIN=' . escapeshellarg($folder) . ' go install -ldflags ' . escapeshellarg('-X main.version=' . self::VERSION)
                . ' github.com/bojand/ghz/cmd/ghz@' . self::VERSION;
            passthru("$command >&2", $code);
            $code === 0 || throw new BenchmarkException("cannot install ghz (code $code): it needs Go and the Go module proxy");
        }

        return new self($program);
    }

    private function __construct(private readonly string $program)
    {
    }

    /**
     * @param string $proto file with the service
     * @param string $method such as `api.Users.Get`
     * @param string $data the request as JSON
     * @param list<string> $pin command that is put before it, such as `taskset -c 1`
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
        );
    }
}
