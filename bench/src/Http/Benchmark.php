<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Build;
use Weft\Bench\Cores;
use Weft\Bench\DiskFlush;
use Weft\Bench\Machine;
use Weft\Bench\Progress;
use Weft\Bench\Services;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** The whole comparison, from the command line to the results. */
final class Benchmark
{
    private readonly string $out;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->out = "$root/bench/out";
    }

    public function run(): Results
    {
        @mkdir("{$this->out}/http-logs", recursive: true);
        $contenders = $this->contenders();
        $database = new People(getenv('DATABASE_URL') ?: throw new BenchmarkException('DATABASE_URL is not set: run `make services` and `. var/services/env`'));
        Machine::warnWhenBusy();
        $race = new Race(
            $contenders,
            $this->environment($database),
            Cores::server(),
            Cores::load(),
            "{$this->out}/http-logs",
            new Progress(Race::turns($contenders, $this->options)),
        );
        try {
            $runs = (new Services($this->root))->withDatabaseBesideLoad(fn (): array => $race->run($this->options));
            $idle = $race->idle($this->options->idle);
        } finally {
            $race->stop();
        }
        $machine = Machine::describe(Spread::of([DiskFlush::microseconds($this->out)]));
        $results = new Results($machine, $this->versions() + ['postgresql' => $database->version()], $runs, $idle);
        $results->save($this->options->out);

        return $results;
    }

    /** @return non-empty-list<Contender> */
    private function contenders(): array
    {
        $bench = "{$this->root}/bench/http";
        $all = Contenders::all($bench, $this->out, $this->options->extension, $this->options->swoole, $this->options->roadRunner, $this->options->frankenPhp);
        $selected = Contenders::select($all, $this->options->only);
        foreach ($selected as $contender) {
            $contender->unavailable = match ($contender->system) {
                'go' => Build::failure(fn () => Build::go("$bench/peers/go", "{$this->out}/http-go")),
                'node' => Build::failure(static fn () => Build::npm("$bench/peers/node")),
                'floor-epoll', 'floor-io_uring' => Build::failure(fn () => Build::cargo("$bench/peers/floor", "{$this->out}/http-floor")),
                default => null,
            };
            foreach ($contender->files as $file) {
                is_file($file) || throw new BenchmarkException("{$contender->system} needs $file; build it, or name the others with --only");
            }
        }

        return $selected;
    }

    /** @return array<string, string> */
    private function environment(People $database): array
    {
        $static = "{$this->out}/http-files/static";
        @mkdir($static, recursive: true);
        file_put_contents("$static/file.bin", Workload::fileContents());
        $version = PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION;

        return [
            'DATABASE_URL' => $database->url(),
            'STATIC_DIRECTORY' => $static,
            'RUN_DIRECTORY' => "{$this->out}/http-fpm",
            'PHP_FPM' => "/usr/sbin/php-fpm$version",
            'GOMAXPROCS' => '1',
            'NODE_ENV' => 'production',
        ];
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        $peers = "{$this->root}/bench/http/peers";

        return array_filter([
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'swoole' => Versions::swoole($this->options->swoole),
            'roadrunner' => Versions::roadRunner($this->options->roadRunner),
            'frankenphp' => Versions::frankenPhp($this->options->frankenPhp),
            'go' => Versions::of('go version'),
            'pgx' => Versions::module("$peers/go/go.mod", 'jackc/pgx/v5'),
            'node' => Versions::of('node --version'),
            'pg' => Versions::npm("$peers/node", 'pg'),
            'nginx' => Versions::of('nginx -v'),
            'wrk' => Versions::of('wrk -v'),
            'h2load' => Versions::of('h2load --version'),
        ]);
    }
}
