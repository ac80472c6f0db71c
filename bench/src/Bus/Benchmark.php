<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\Build;
use Weft\Bench\Machine;
use Weft\Bench\ProcessTree;
use Weft\Bench\Progress;

/** The whole comparison, from the command line to the table. */
final class Benchmark
{
    private RabbitMqBroker $broker;
    private PostgresDatabase $database;
    private ServerGround $servers;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
    }

    public function run(): Results
    {
        $contenders = $this->contenders();
        $this->connect();
        $versions = $this->versions();
        if (Machine::isBusy()) {
            fwrite(STDERR, sprintf("The machine is busy (load %.1f): the numbers will not be comparable.\n", sys_getloadavg()[0]));
        }
        $race = $this->race($contenders);
        $runs = $race->run($this->options->runs);
        $results = new Results(Machine::describe($race->flush()), $versions, $runs);
        $this->broker->delete();
        $results->save($this->options->out);

        return $results;
    }

    /** @return non-empty-list<Contender> */
    private function contenders(): array
    {
        @mkdir("{$this->out()}/bus-logs", recursive: true);
        $go = "{$this->out()}/bus-go";
        $all = Contenders::all("{$this->root}/bench/bus", $go, $this->options->extension);
        $selected = Contenders::select($all, $this->options->only);
        foreach ($selected as $contender) {
            if ($contender->system === 'go') {
                $contender->unavailable = Build::failure(fn () => (new Toolchain($this->root))->buildGo($go));
            }
        }

        return $selected;
    }

    private function connect(): void
    {
        $services = Services::variables($this->root);
        $this->broker = new RabbitMqBroker($services['AMQP_URL'], $services['RABBITMQ_MANAGEMENT_URL']);
        $this->database = new PostgresDatabase($services['DATABASE_URL']);
        $this->servers = new ServerGround(
            $this->broker,
            $this->database,
            isset($services['RABBITMQ_PID']) ? new ProcessTree((int) $services['RABBITMQ_PID']) : null,
            isset($services['POSTGRES_PID']) ? new ProcessTree((int) $services['POSTGRES_PID']) : null,
        );
    }

    /** @param non-empty-list<Contender> $contenders */
    private function race(array $contenders): Race
    {
        $sqlite = new SqliteGround("{$this->out()}/bus-sqlite");

        return new Race(
            $contenders,
            fn (Transport $transport): Ground => match ($transport) {
                Transport::RabbitMq => $this->servers,
                Transport::Sqlite => $sqlite,
            },
            $this->options->commands,
            $this->options->persistent,
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
