<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Bus\ServerGround;
use Weft\Bench\Bus\Toolchain;
use Weft\Bench\DiskFlush;
use Weft\Bench\Machine;
use Weft\Bench\Progress;
use Weft\Bench\Services;
use Weft\Bench\Spread;

/** All curves, from the command line to the results. */
final class Benchmark
{
    private const WORKERS = [1, 2, 4];
    private const WORKERS_SHORT = [1, 2];

    private readonly string $out;
    private readonly string $logs;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->out = "$root/bench/out";
        $this->logs = "{$this->out}/scale-logs";
    }

    public function run(): Results
    {
        is_file($this->options->extension) || throw new BenchmarkException("{$this->options->extension} is not there: run `make build`");
        @mkdir($this->logs, recursive: true);
        $services = new Services($this->root);
        try {
            $services->start(['rabbitmq', 'postgres']);
            $ground = ServerGround::connect($services->variables());
            Machine::warnWhenBusy();
            $runs = $this->measure($this->points($ground, $services->variables()));
            $versions = (new Toolchain($this->root))->versions()
                + ['rabbitmq' => $ground->broker->version(), 'postgresql' => $ground->database->version()];
        } finally {
            isset($ground) && $ground->broker->delete();
            $services->stop();
        }
        $results = new Results(Machine::describe(Spread::of([DiskFlush::microseconds($this->out)])), $versions, $runs);
        $results->save($this->options->out);

        return $results;
    }

    /**
     * @param array<string, string> $services
     *
     * @return list<Point> in the order they are measured: round after round
     */
    private function points(ServerGround $ground, array $services): array
    {
        $bus = new BusPoints($ground, "{$this->root}/bench/bus", $this->options->extension, $this->options->commands);
        $workers = $this->options->short ? self::WORKERS_SHORT : self::WORKERS;
        $environment = ServerPoints::environment($this->out, $services['DATABASE_URL']);
        $servers = new ServerPoints($this->root, $this->options->extension, $environment, $this->options->seconds, $workers);
        $tasks = new TaskPoints("{$this->root}/bench/scale/tasks.php", $this->options->extension);
        $points = [];
        for ($round = 1; $round <= $this->options->rounds; ++$round) {
            foreach ($this->options->curves as $curve) {
                foreach ($round > $curve->rounds($this->options->rounds) ? [] : $curve->values($this->options->short) as $x) {
                    array_push($points, ...match ($curve) {
                        Curve::Concurrency, Curve::PoolSize, Curve::Backlog => $bus->of($curve, $x),
                        Curve::Http, Curve::Grpc => $servers->of($curve, $x),
                        Curve::Tasks => [$tasks->of($x)],
                    });
                }
            }
        }

        return $points;
    }

    /**
     * @param list<Point> $points
     *
     * @return list<array<string, mixed>> as in the results file
     */
    private function measure(array $points): array
    {
        $progress = new Progress(count($points));
        $runs = [];
        foreach ($points as $number => $point) {
            $progress->start($point->label());
            $log = sprintf('%s/%03d-%s.log', $this->logs, $number + 1, $point->curve->value);
            try {
                $measured = ($point->measure)($log);
                array_push($runs, ...array_map(static fn (string $line, float $y): array => Results::run($point, $line ?: $point->series, $y), array_keys($measured), $measured));
                $progress->finish(implode(', ', array_map(static fn (float $y): string => number_format($y, $y < 100 ? 2 : 0), $measured)) . " {$point->curve->labels()[1]}");
            } catch (BenchmarkException | \PDOException $failure) {
                $runs[] = Results::failed($point, $failure->getMessage(), $log);
                $progress->finish('FAILED: ' . strtok($failure->getMessage(), "\n"));
            }
        }

        return $runs;
    }
}
