<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Grpc\Call;
use Weft\Bench\Load\H2load;
use Weft\Bench\Load\Load;
use Weft\Bench\Load\Wrk;
use Weft\Bench\Port;
use Weft\Bench\Server;

/** The servers of bench/http and bench/grpc under `weft run`, with connections and workers varied. Nobody is pinned to a core. */
final class ServerPoints
{
    /**
     * @param string $root the repository
     * @param array<string, string> $environment of the servers
     * @param int $seconds of load
     * @param list<int> $workers
     */
    public function __construct(
        private readonly string $root,
        private readonly string $extension,
        private readonly array $environment,
        private readonly int $seconds,
        private readonly array $workers,
    ) {
    }

    /**
     * What the programs of bench/http and bench/grpc need.
     *
     * @param string $out directory in which there may be another one of files
     * @param string $database URL
     *
     * @return array<string, string>
     */
    public static function environment(string $out, string $database): array
    {
        $static = "$out/http-files/static";
        @mkdir($static, recursive: true);

        return ['DATABASE_URL' => $database, 'STATIC_DIRECTORY' => $static];
    }

    /** @return list<Point> */
    public function of(Curve $curve, int $connections): array
    {
        return array_map(fn (int $workers): Point => new Point(
            $curve,
            $workers === 1 ? '1 worker' : "$workers workers",
            $connections,
            fn (string $log): array => ['' => $this->rate($curve, $connections, $workers, $log)],
        ), $this->workers);
    }

    private function rate(Curve $curve, int $connections, int $workers, string $log): float
    {
        $port = Port::free();
        $application = $curve === Curve::Http ? 'bench/http/weft/app.php' : 'bench/grpc/weft/app.php';
        $command = [
            PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', "extension={$this->extension}", "{$this->root}/bin/weft", 'run',
            "--workers=$workers", "{$this->root}/$application",
        ];
        $server = Server::start($command, ['PORT' => (string) $port] + $this->environment, $log, $port);
        try {
            $load = $curve === Curve::Http
                ? Wrk::run("http://127.0.0.1:$port/hello", $connections, $this->seconds)
                : $this->calls($port, $connections, "$log.frame");
            $load->errors === 0 || throw new BenchmarkException("{$load->errors} of {$load->requests} requests failed, log: $log");

            return $load->perSecond();
        } finally {
            $server->stop();
        }
    }

    private function calls(int $port, int $connections, string $frame): Load
    {
        file_put_contents($frame, Call::Get->frame());
        $options = ["--data=$frame", '--header=content-type: application/grpc', '--header=te: trailers'];

        return H2load::run("http://127.0.0.1:$port" . Call::Get->path(), $connections, $this->seconds, options: $options);
    }
}
