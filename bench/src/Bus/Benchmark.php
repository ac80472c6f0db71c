<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\Build;
use Weft\Bench\Machine;
use Weft\Bench\Progress;
use Weft\Bench\Services;

/** The whole comparison, from the command line to the table. */
final class Benchmark
{
    private const SERVERS = ['AMQP_URL', 'DATABASE_URL', 'RABBITMQ_MANAGEMENT_URL'];

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
            $this->ground = ServerGround::connect($this->servers($services));
            Machine::warnWhenBusy();
            $race = $this->race($contenders);
            $runs = $race->run($this->options->runs);
            $results = new Results(Machine::describe($race->flush()), $this->versions(), $runs);
            $results->save($this->options->out);

            return $results;
        } finally {
            isset($this->ground) && $this->ground->broker->delete();
            $services->stop();
        }
    }

    /** @return non-empty-list<Contender> */
    private function contenders(): array
    {
        @mkdir("{$this->out()}/bus-logs", recursive: true);
        $go = "{$this->out()}/bus-go";
        $all = Contenders::all("{$this->root}/bench/bus", $go, $this->options->extension, $this->options->serviceBus);
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

    /** @return array<string, string> the servers named by the environment, or else those of this checkout */
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

        $grounds = fn (Transport $transport): Ground => match ($transport) {
            Transport::RabbitMq => $this->ground,
            Transport::Postgres => $this->ground->withoutBroker(),
            Transport::Sqlite => $sqlite,
        };
        $turn = new Turn($grounds, $this->options->commands, $this->options->timeout);

        return new Race($contenders, $turn, "{$this->out()}/bus-logs", new Progress(count($contenders) * $this->options->runs));
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        $servers = ['rabbitmq' => $this->ground->broker->version(), 'postgresql' => $this->ground->database->version()];

        return (new Toolchain($this->root, $this->options->serviceBus))->versions() + $servers;
    }

    private function out(): string
    {
        return "{$this->root}/bench/out";
    }
}
