<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\BenchmarkException;
use Weft\Bench\DiskFlush;
use Weft\Bench\Machine;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** One run of the Rinha, from the command line to the results. */
final class Benchmark
{
    private readonly string $out;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->out = "$root/bench/out/rinha";
    }

    public function run(): Results
    {
        is_file($this->options->extension) || throw new BenchmarkException("{$this->options->extension} is not there: run `make build`");
        @mkdir($this->out, recursive: true);
        $gatling = new Gatling("{$this->root}/bench/rinha/gatling", $this->out);
        $gatling->build();
        $data = Data::write($this->out);
        $runs = $flushes = $settings = [];
        $isLimited = true;
        foreach ($this->options->inserts as $inserts) {
            $flushes[] = DiskFlush::microseconds($this->out);
            $stack = new Stack("{$this->root}/examples/rinha", "{$this->out}/{$inserts->value}", $this->options->extension);
            try {
                $stack->start($inserts, $this->options->limited);
                $isLimited = $isLimited && $stack->isLimited();
                $settings = $stack->settings();
                $runs[] = $this->measure($inserts, $stack, $gatling, $data);
            } finally {
                $stack->stop();
            }
        }
        $results = new Results(Machine::describe(Spread::of($flushes)), $this->versions() + $settings, $isLimited, $this->options->scale, $runs);
        $results->save($this->options->out);

        return $results;
    }

    private function measure(Inserts $inserts, Stack $stack, Gatling $gatling, Data $data): Run
    {
        $limits = $stack->isLimited() ? 'within 1.5 processors and 3.0 GB' : 'WITHOUT LIMITS: ' . $this->reason();
        fwrite(STDERR, sprintf("%s: %.0f seconds of load, %s\n", $inserts->title(), Gatling::LOAD_SECONDS * $this->options->scale, $limits));
        $stack->beginMeasurement();
        $started = microtime(true);
        $directory = $gatling->run($stack->url(), $data, $this->options->scale);
        $seconds = microtime(true) - $started;
        $log = SimulationLog::read("$directory/simulation.log");
        $report = "{$this->out}/{$inserts->value}/report";
        exec('rm -rf ' . escapeshellarg($report) . ' && mv ' . escapeshellarg($directory) . ' ' . escapeshellarg($report));

        return Run::of(
            $inserts,
            $log,
            $stack->people(),
            $stack->transactions(),
            $data->expectedPeople($log->requests('create')),
            $stack->usage($seconds),
        );
    }

    private function reason(): string
    {
        return $this->options->limited ? 'this machine allows this user no control groups' : '--unlimited';
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        preg_match('/gatling-charts-highcharts<.*?<version>(.*?)</s', file_get_contents("{$this->root}/bench/rinha/gatling/pom.xml"), $gatling);

        return [
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'nginx' => Versions::of('nginx -v'),
            'gatling' => $gatling[1] ?? '',
        ];
    }
}
