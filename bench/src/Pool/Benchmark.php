<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\BenchmarkException;
use Weft\Bench\DiskFlush;
use Weft\Bench\Load\Wrk;
use Weft\Bench\Machine;
use Weft\Bench\Port;
use Weft\Bench\Progress;
use Weft\Bench\Server;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** The presets in turn, from the command line to the results. */
final class Benchmark
{
    private const WARM_UP_SECONDS = 1;
    private const LOAD_THREADS = 8;

    private readonly string $out;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->out = "$root/bench/out";
    }

    public function run(): Results
    {
        is_file($this->options->extension) || throw new BenchmarkException("{$this->options->extension} is not there: run `make build`");
        @mkdir("{$this->out}/pool-logs", recursive: true);
        Machine::warnWhenBusy();
        $runs = [];
        $presets = $this->presets();
        $progress = new Progress(count($presets) * $this->options->rounds);
        for ($round = 1; $round <= $this->options->rounds; ++$round) {
            foreach ($presets as $preset) {
                $log = "{$this->out}/pool-logs/" . strtr("{$preset->name}-" . ($preset->pool ? 'on' : 'off'), ', ', '--') . "-$round.log";
                $progress->start(sprintf('%-22s pool %-3s round %d', $preset->name, $preset->pool ? 'on' : 'off', $round));
                $runs[] = $run = $this->attempt($preset, $log);
                $progress->finish($run->outcome());
            }
        }
        $machine = Machine::describe(Spread::of([DiskFlush::microseconds($this->out)]));
        $results = new Results($machine, $this->versions(), $runs);
        $results->save($this->options->out);

        return $results;
    }

    /** @return list<Preset> each for Weft, and behind it for Swoole where there is one */
    private function presets(): array
    {
        $presets = [];
        foreach (Preset::all() as $preset) {
            array_push($presets, $preset, ...($this->options->swoole === null ? [] : [$preset->forSwoole()]));
        }

        return $presets;
    }

    private function attempt(Preset $preset, string $log): Run
    {
        try {
            return $this->measure($preset, $log);
        } catch (BenchmarkException $failure) {
            return Run::failed($preset, Machine::cores(), $failure->getMessage(), $log);
        }
    }

    private function measure(Preset $preset, string $log): Run
    {
        $port = Port::free();
        [$extension, $runner] = $preset->isSwoole ? [$this->options->swoole, 'peers/swoole/runner.php'] : [$this->options->extension, 'runner.php'];
        $command = [
            PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', "extension=$extension", "{$this->root}/bench/pool/$runner",
            '--server.host=127.0.0.1', "--server.port=$port", "--connection.dsn={$this->options->url}", ...$preset->arguments(),
        ];
        $runner = Server::start($command, [], $log, $port);
        try {
            $url = "http://127.0.0.1:$port/test";
            Wrk::run($url, $preset->connections, self::WARM_UP_SECONDS, threads: self::LOAD_THREADS);
            [$cpu, $databaseCpu] = [$runner->tree->cpuSeconds(), $this->options->server?->cpuSeconds()];
            $load = Wrk::run($url, $preset->connections, $this->options->seconds, threads: self::LOAD_THREADS);

            return Run::finished(
                $preset,
                Machine::cores(),
                $load,
                $runner->tree->cpuSeconds() - $cpu,
                $databaseCpu === null ? null : $this->options->server->cpuSeconds() - $databaseCpu,
            );
        } finally {
            $runner->stop();
        }
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        return array_filter([
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'swoole' => Versions::swoole($this->options->swoole),
            'wrk' => Versions::of('wrk -v'),
            $this->options->database => Versions::of($this->options->database === 'mysql' ? 'mariadbd --version' : 'psql --version'),
        ]);
    }
}
