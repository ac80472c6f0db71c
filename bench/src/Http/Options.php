<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;
use Weft\Bench\RoadRunner;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/http/run [--short] [--rounds=N] [--seconds=N] [--connections=N,…] [--cases=NAME,…]
                              [--protocols=NAME,…] [--only=NAME,…] [--idle=N] [--extension=FILE] [--out=FILE]

          --short        one round with 64 connections: the shape of the table in two minutes
          --rounds       rounds, 4; in each every contender takes its turn, in another order
          --seconds      load in each turn, 1
          --connections  1,64,256
          --cases        hello,json,query,queries-5,queries-20,update,fortunes,body,static
          --protocols    http/1.1,h2
          --only         contenders: weft weft-pipelined swoole roadrunner frankenphp go node php-fpm php-builtin; all of them by default.
                         floor-epoll and floor-io_uring answer hello without being servers: what the kernel leaves to one
          --idle         idle connections whose memory is measured, 10000; bounded by `ulimit -n`
          --extension    libweft.so, target/release/libweft.so
          --out          where the results go, bench/out/http.json

        Uses DATABASE_URL, as `make services` writes it to var/services/env. Exits with 1 when a contender failed.
        SWOOLE_EXTENSION=/path/swoole.so adds Swoole, FRANKENPHP=/path/frankenphp FrankenPHP in worker mode, ROADRUNNER=/path/rr with
        ROADRUNNER_AUTOLOAD=/path/vendor/autoload.php RoadRunner; bench/http/README.md says where they come from.

        USAGE;

    /**
     * @param non-empty-list<int> $connections
     * @param non-empty-list<Workload> $workloads
     * @param non-empty-list<Protocol> $protocols
     * @param list<string> $only
     */
    private function __construct(
        public readonly int $rounds,
        public readonly int $seconds,
        public readonly array $connections,
        public readonly array $workloads,
        public readonly array $protocols,
        public readonly array $only,
        public readonly int $idle,
        public readonly string $extension,
        public readonly ?string $swoole,
        public readonly ?string $roadRunner,
        public readonly ?string $frankenPhp,
        public readonly string $out,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'rounds' => $short ? '1' : '4',
            'seconds' => '1',
            'connections' => $short ? '64' : '1,64,256',
            'cases' => implode(',', array_column(Workload::cases(), 'value')),
            'protocols' => implode(',', array_column(Protocol::cases(), 'value')),
            'only' => '',
            'idle' => '10000',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/http.json",
        ]);

        return new self(
            $line->positive('rounds'),
            $line->positive('seconds'),
            $line->positives('connections'),
            array_map(self::workload(...), $line->names('cases')),
            array_map(self::protocol(...), $line->names('protocols')),
            $line->names('only'),
            $line->positive('idle'),
            $line->text('extension'),
            getenv('SWOOLE_EXTENSION') ?: null,
            RoadRunner::fromEnvironment(),
            getenv('FRANKENPHP') ?: null,
            $line->text('out'),
        );
    }

    private static function workload(string $name): Workload
    {
        return Workload::tryFrom($name) ?? throw new BenchmarkException(
            "there is no case '$name', there are: " . implode(' ', array_column(Workload::cases(), 'value')),
        );
    }

    private static function protocol(string $name): Protocol
    {
        return Protocol::tryFrom($name) ?? throw new BenchmarkException("there is no protocol '$name', there are: http/1.1 h2");
    }
}
