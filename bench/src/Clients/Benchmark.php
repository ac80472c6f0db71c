<?php

declare(strict_types=1);

namespace Weft\Bench\Clients;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Bus\RabbitMqBroker;
use Weft\Bench\DiskFlush;
use Weft\Bench\Http\People;
use Weft\Bench\Machine;
use Weft\Bench\Program;
use Weft\Bench\Services;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** Weft's native clients and those that others have published take turns under the same load, without PHP. */
final class Benchmark
{
    private const QUEUE = 'clients';
    private const CONNECTIONS = 4;
    private const TIMEOUT = 120.0;

    private string $logs;
    private string $program;
    private RabbitMqBroker $broker;
    private People $people;
    private \PDO $database;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->logs = "$root/bench/out/clients-logs";
        $this->program = "$root/bench/out/clients/release/clients";
        @mkdir($this->logs, recursive: true);
    }

    public function run(): Results
    {
        $this->build();
        $services = new Services($this->root);
        $services->start(['rabbitmq', 'postgres']);
        try {
            return $this->measure($services->variables());
        } finally {
            isset($this->broker) && $this->broker->delete();
            $services->stop();
        }
    }

    private function build(): void
    {
        $command = ['cargo', 'build', '--locked', '--release', '--manifest-path', "{$this->root}/bench/clients/program/Cargo.toml", '--target-dir', "{$this->root}/bench/out/clients"];
        passthru(implode(' ', array_map(escapeshellarg(...), $command)) . ' >&2', $code);
        $code === 0 || throw new BenchmarkException("cargo exited with code $code");
    }

    /** @param array<string, string> $services the addresses of the servers */
    private function measure(array $services): Results
    {
        $this->broker = new RabbitMqBroker($services['AMQP_URL'], $services['RABBITMQ_MANAGEMENT_URL']);
        $this->people = new People($services['DATABASE_URL']);
        $this->database = People::connect($this->people->url());
        Machine::warnWhenBusy();
        $runs = $flushes = [];
        for ($round = 0; $round <= $this->options->rounds; ++$round) {
            foreach ($this->options->workloads as $workload) {
                $contenders = $workload->contenders();
                foreach ($round % 2 === 0 ? $contenders : array_reverse($contenders) as $client) {
                    $flushes[] = DiskFlush::microseconds($this->logs);
                    $run = $this->attempt($workload, $client, $round);
                    if ($round > 0) {
                        $runs[] = $run;
                    }
                }
            }
        }
        $results = new Results(Machine::describe(Spread::of($flushes)), $this->versions(), $runs);
        $results->save($this->options->out);

        return $results;
    }

    private function attempt(Workload $workload, string $client, int $round): Run
    {
        $operations = $workload->operations($this->options->short);
        fwrite(STDERR, sprintf('round %d %-8s %-15s', $round, $workload->value, $client));
        try {
            $this->prepare($workload, $operations);
            $said = $this->drive($workload, $client, $operations);
            $this->verify($workload, $operations);
            $run = new Run($workload, $client, $round, $operations / $said['seconds'], $said['cpu'] / $operations * 1e6);
            fwrite(STDERR, sprintf(" %9s/s %6.1f µs\n", number_format($run->perSecond), $run->cpu));
        } catch (BenchmarkException | \JsonException $failure) {
            fwrite(STDERR, " FAILED: {$failure->getMessage()}\n");
            $run = new Run($workload, $client, $round, 0.0, 0.0, $failure->getMessage());
        }

        return $run;
    }

    /** @return array{seconds: float, cpu: float} as the program prints them */
    private function drive(Workload $workload, string $client, int $operations): array
    {
        $usage = Program::run([$this->program, $client, $workload->value], [
            'AMQP_URL' => $this->broker->url(),
            'DATABASE_URL' => $this->people->url(),
            'QUEUE' => self::QUEUE,
            'CONNECTIONS' => (string) self::CONNECTIONS,
            'OPERATIONS' => (string) $operations,
            'WINDOW' => (string) $workload->window(),
        ], "{$this->logs}/$client-{$workload->value}.log", self::TIMEOUT, static fn () => null);

        return json_decode($usage->output, true, flags: JSON_THROW_ON_ERROR);
    }

    /** Puts the queue and the table into the state that the load begins with. */
    private function prepare(Workload $workload, int $operations): void
    {
        $this->database->exec('DROP TABLE IF EXISTS clients_inserted; CREATE TABLE clients_inserted (id int PRIMARY KEY, name text NOT NULL)');
        $this->broker->reset();
        $this->broker->declare(self::QUEUE);
        if ($workload === Workload::Consume) {
            $this->drive(Workload::Publish, 'weft-amqp', $operations);
        }
    }

    private function verify(Workload $workload, int $operations): void
    {
        [$what, $found, $expected] = match ($workload) {
            Workload::Publish => ['messages in the queue', $this->broker->queued(), $operations],
            Workload::Consume => ['messages left in the queue', $this->broker->queued(), 0],
            Workload::Insert => ['rows', (int) $this->database->query('SELECT count(DISTINCT name) FROM clients_inserted')->fetchColumn(), $operations],
            Workload::Select, Workload::Scan => ['', 0, 0],
        };
        $found === $expected || throw new BenchmarkException("$found $what, expected $expected");
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        $lock = (string) file_get_contents("{$this->root}/bench/clients/program/Cargo.lock");
        $crate = static fn (string $name): string => preg_match("/^name = \"$name\"\nversion = \"(.+)\"/m", $lock, $match) ? $match[1] : '';

        return [
            'weft' => Versions::weft($this->root),
            'lapin' => $crate('lapin'),
            'tokio-postgres' => $crate('tokio-postgres'),
            'deadpool-postgres' => $crate('deadpool-postgres'),
            'rabbitmq' => $this->broker->version(),
            'postgresql' => $this->people->version(),
        ];
    }
}
