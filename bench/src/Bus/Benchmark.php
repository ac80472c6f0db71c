<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\Build;
use Weft\Bench\Machine;
use Weft\Bench\ProcessTree;
use Weft\Bench\Progress;
use Weft\Bench\Services;

/** The whole comparison, from the command line to the table. */
final class Benchmark
{
    private const SERVERS = ['AMQP_URL', 'DATABASE_URL', 'RABBITMQ_MANAGEMENT_URL'];

    private RabbitMqBroker $broker;
    private PostgresDatabase $database;
    private ServerGround $ground;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
    }

    public function run(): Results
    {
        $contenders = $this->contenders();
        $services = new Services($this->root);
        try {
            $this->connect($this->servers($services));
            Machine::warnWhenBusy();
            $race = $this->race($contenders);
            $runs = $race->run($this->options->runs);
            $results = new Results(Machine::describe($race->flush()), $this->versions(), $runs);
            $results->save($this->options->out);

            return $results;
        } finally {
            isset($this->broker) && $this->broker->delete();
            $services->stop();
        }
    }

    /** @return non-empty-list<Contender> */
    private function contenders(): array
    {
        @mkdir("{$this->out()}/bus-logs", recursive: true);
        $go = "{$this->out()}/bus-go";
        $all = Contenders::all("{$this->root}/bench/bus", $go, $this->options->extension);
        $all = $this->options->matrix
            ? Contenders::matrix($all)
            : array_map(fn (Contender $contender): Contender => $contender->with($this->options->persistent), $all);
        $selected = Contenders::select($all, $this->options->only);
        $compiled = array_filter($selected, static fn (Contender $contender): bool => $contender->system === 'go');
        $failure = $compiled === [] ? null : Build::failure(fn () => (new Toolchain($this->root))->buildGo($go));
        foreach ($compiled as $contender) {
            $contender->unavailable = $failure;
        }

        return $selected;
    }

    /** @param array<string, string> $services */
    private function connect(array $services): void
    {
        $this->broker = new RabbitMqBroker($services['AMQP_URL'], $services['RABBITMQ_MANAGEMENT_URL']);
        $this->database = new PostgresDatabase($services['DATABASE_URL']);
        $this->ground = new ServerGround(
            $this->broker,
            $this->database,
            isset($services['RABBITMQ_PID']) ? new ProcessTree((int) $services['RABBITMQ_PID']) : null,
            isset($services['POSTGRES_PID']) ? new ProcessTree((int) $services['POSTGRES_PID']) : null,
            isset($services['RABBITMQ_PROMETHEUS_URL']) ? new Counters($services['RABBITMQ_PROMETHEUS_URL']) : null,
        );
    }

    /** @return array<string, string> what the environment says, all or nothing, or where the servers of this checkout are */
    private function servers(Services $services): array
    {
        if (array_diff(self::SERVERS, array_keys(getenv())) === []) {
            return getenv();
        }
        $services->start(['rabbitmq', 'postgres']);

        return $services->variables();
    }

    /** @param non-empty-list<Contender> $contenders */
    private function race(array $contenders): Race
    {
        $sqlite = new SqliteGround("{$this->out()}/bus-sqlite");

        return new Race(
            $contenders,
            fn (Transport $transport): Ground => match ($transport) {
                Transport::RabbitMq => $this->ground,
                Transport::Sqlite => $sqlite,
            },
            $this->options->commands,
            $this->options->timeout,
            "{$this->out()}/bus-logs",
            new Progress(count($contenders) * $this->options->runs),
        );
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        $servers = ['rabbitmq' => $this->broker->version(), 'postgresql' => $this->database->version()];

        return (new Toolchain($this->root))->versions() + $servers;
    }

    private function out(): string
    {
        return "{$this->root}/bench/out";
    }
}
