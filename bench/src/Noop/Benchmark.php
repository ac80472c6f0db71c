<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Bus\RabbitMqBroker;
use Weft\Bench\DiskFlush;
use Weft\Bench\Machine;
use Weft\Bench\ProcessTree;
use Weft\Bench\Program;
use Weft\Bench\Services;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** Each contender fills an empty queue and empties it again, round after round. */
final class Benchmark
{
    private const QUEUE = 'noop';
    private const WINDOW = 256;
    private const BYTES = 100;
    private const TIMEOUT = 300.0;

    private RabbitMqBroker $broker;
    private ?ProcessTree $brokerProcess;
    private string $logs;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->logs = "$root/bench/out/noop-logs";
        @mkdir($this->logs, recursive: true);
    }

    public function run(): Results
    {
        $services = new Services($this->root);
        $services->start(['rabbitmq']);
        try {
            return $this->measure($services->variables());
        } finally {
            isset($this->broker) && $this->broker->delete();
            $services->stop();
        }
    }

    /** @param array<string, string> $services where the broker is */
    private function measure(array $services): Results
    {
        $this->broker = new RabbitMqBroker($services['AMQP_URL'], $services['RABBITMQ_MANAGEMENT_URL']);
        $this->brokerProcess = isset($services['RABBITMQ_PID']) ? new ProcessTree((int) $services['RABBITMQ_PID']) : null;
        $environment = [
            'AMQP_URL' => $this->broker->url(),
            'BENCH_QUEUE' => self::QUEUE,
            'MESSAGES' => (string) $this->options->messages,
            'WINDOW' => (string) self::WINDOW,
            'BYTES' => (string) self::BYTES,
        ];
        $contenders = (new Contenders($this->root, $this->options, $environment))->selected();
        Machine::warnWhenBusy();
        $runs = $flushes = [];
        for ($round = 1; $round <= $this->options->runs; ++$round) {
            $order = (new \Random\Randomizer(new \Random\Engine\Mt19937($round)))->shuffleArray($contenders);
            foreach ($order as $contender) {
                $flushes[] = DiskFlush::microseconds($this->logs);
                array_push($runs, ...$this->attempt($contender, $round, $environment));
            }
        }
        $results = new Results(Machine::describe(Spread::of($flushes)), $this->versions(), $this->options->messages, $runs);
        $results->save($this->options->out);

        return $results;
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        return array_filter([
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'ext-amqp' => (string) phpversion('amqp'),
            'go' => Versions::of('go version'),
            'amqp091-go' => Versions::module("{$this->root}/bench/noop/peers/go/go.mod", 'rabbitmq/amqp091-go'),
            'rabbitmq' => $this->broker->version(),
        ]);
    }

    /**
     * @param array<string, string> $environment
     * @return list<Run>
     */
    private function attempt(Contender $contender, int $round, array $environment): array
    {
        $runs = [];
        try {
            $this->broker->reset();
            $this->broker->declare(self::QUEUE);
            foreach (['publish' => $this->options->messages, 'consume' => 0] as $action => $left) {
                fwrite(STDERR, sprintf('%-12s round %d %s', $contender->name, $round, $action));
                $cpu = $this->brokerProcess?->cpuSeconds();
                $usage = Program::run(($contender->command)($action), $environment, "{$this->logs}/{$contender->name}-$action-$round.log", self::TIMEOUT, static fn () => null);
                $queued = $this->broker->queued();
                $queued === $left || throw new BenchmarkException("$queued messages are in the queue after $action, not $left");
                $runs[] = $run = new Run(
                    $contender->name,
                    $action,
                    $this->options->messages / ($contender->seconds)($usage->output),
                    $usage->cpuSeconds,
                    $cpu === null ? null : $this->brokerProcess->cpuSeconds() - $cpu,
                );
                fwrite(STDERR, sprintf("  %s/s\n", number_format($run->perSecond)));
            }
        } catch (BenchmarkException $failure) {
            fwrite(STDERR, "  FAILED: {$failure->getMessage()}\n");
            $runs[] = new Run($contender->name, 'failed', 0.0, 0.0, null, $failure->getMessage());
        }

        return $runs;
    }
}
