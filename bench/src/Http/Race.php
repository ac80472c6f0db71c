<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Load\H2load;
use Weft\Bench\Load\IdleConnections;
use Weft\Bench\Load\Load;
use Weft\Bench\Load\Wrk;
use Weft\Bench\Progress;
use Weft\Bench\TimedOut;

/** Puts the contenders under the same load in turn, and lets another one begin in each round. */
final class Race
{
    private const SETTLE_MICROSECONDS = 300_000;
    /** The end of its output. */
    private const CURL_TIMED_OUT = ' 28';

    /** @var array<string, true> answers that were checked already */
    private array $checked = [];

    /**
     * @param non-empty-list<Contender> $contenders
     * @param array<string, string> $environment of the contenders
     * @param list<string> $serverPin command before a contender's own
     * @param list<string> $loadPin command before the load generator's
     * @param string $logs directory
     */
    public function __construct(
        private readonly array $contenders,
        private readonly array $environment,
        private readonly array $serverPin,
        private readonly array $loadPin,
        private readonly string $logs,
        private readonly Progress $progress,
    ) {
    }

    /**
     * How many there will be, those with idle connections included.
     *
     * @param non-empty-list<Contender> $contenders
     */
    public static function turns(array $contenders, Options $options): int
    {
        $turns = 0;
        foreach ($options->workloads as $workload) {
            foreach ($options->protocols as $protocol) {
                $turns += count(array_filter($contenders, static fn (Contender $contender): bool => $contender->serves($protocol, $workload)));
            }
        }

        return $turns * $options->rounds * count($options->connections) + count(self::idling($contenders));
    }

    /** @return list<Run> in the order they ran */
    public function run(Options $options): array
    {
        $runs = [];
        for ($round = 0; $round < $options->rounds; ++$round) {
            foreach ($options->workloads as $workload) {
                foreach ($options->protocols as $protocol) {
                    foreach ($options->connections as $connections) {
                        array_push($runs, ...$this->round($round + count($runs), $workload, $protocol, $connections, $options->seconds));
                    }
                }
            }
        }

        return $runs;
    }

    /** @return list<Idle> */
    public function idle(int $connections): array
    {
        return array_map(function (Contender $contender) use ($connections): Idle {
            $this->progress->start(self::label("$connections idle connections", $contender));
            $idle = $this->measureIdle($contender, $connections);
            $this->progress->finish($idle->outcome());

            return $idle;
        }, self::idling($this->contenders));
    }

    public function stop(): void
    {
        array_map(static fn (Contender $contender) => $contender->stop(), $this->contenders);
    }

    /**
     * Those that answer the request by which the connections are opened.
     *
     * @param list<Contender> $contenders
     *
     * @return list<Contender>
     */
    private static function idling(array $contenders): array
    {
        return array_values(array_filter($contenders, static fn (Contender $contender): bool => $contender->serves(Protocol::Http1, Workload::Hello)));
    }

    private static function label(string $what, Contender $contender): string
    {
        return sprintf('%-32s %-14s', $what, $contender->system);
    }

    /** @return list<Run> */
    private function round(int $first, Workload $workload, Protocol $protocol, int $connections, int $seconds): array
    {
        $runs = [];
        foreach (array_keys($this->contenders) as $turn) {
            $contender = $this->contenders[($first + $turn) % count($this->contenders)];
            if ($contender->serves($protocol, $workload)) {
                $this->progress->start(self::label(Run::disciplineOf($workload, $protocol, $connections), $contender));
                $runs[] = $run = $this->attempt($contender, $workload, $protocol, $connections, $seconds);
                $this->progress->finish($run->outcome());
            }
        }

        return $runs;
    }

    private function attempt(Contender $contender, Workload $workload, Protocol $protocol, int $connections, int $seconds): Run
    {
        try {
            return $this->measure($contender, $workload, $protocol, $connections, $seconds);
        } catch (BenchmarkException $failure) {
            $failure instanceof TimedOut && $contender->hung($failure);

            return Run::failed($contender->system, $workload, $protocol, $connections, $failure->getMessage(), $contender->log());
        }
    }

    private function measure(Contender $contender, Workload $workload, Protocol $protocol, int $connections, int $seconds): Run
    {
        $server = $contender->server($this->environment, $this->serverPin, $this->logs);
        $url = $contender->url($protocol, $workload);
        $this->check($contender, $url, $protocol, $workload);
        $cpu = $server->tree->cpuSeconds();
        $load = $this->load($protocol, $url, $connections, $seconds);
        $cpu = $server->tree->cpuSeconds() - $cpu;
        $server->awaitIdle();

        return Run::finished($contender->system, $workload, $protocol, $connections, $load, $cpu, $server->tree->residentMib());
    }

    private function load(Protocol $protocol, string $url, int $connections, int $seconds): Load
    {
        return match ($protocol) {
            Protocol::Http1 => Wrk::run($url, $connections, $seconds, $this->loadPin),
            Protocol::Http2 => H2load::run($url, $connections, $seconds, $this->loadPin),
        };
    }

    /** Uses curl, which is independent of the measured programs. */
    private function check(Contender $contender, string $url, Protocol $protocol, Workload $workload): void
    {
        if (isset($this->checked[$contender->system . $url])) {
            return;
        }
        [$version, $expected] = $protocol === Protocol::Http1 ? ['--http1.1', '200 1.1 0'] : ['--http2-prior-knowledge', '200 2 0'];
        $format = '\n%{http_code} %{http_version} %{exitcode}';
        $command = ['curl', '--silent', '--show-error', '--max-time', '10', $version, '--write-out', $format, $url];
        $output = (string) shell_exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1');
        !str_ends_with($output, self::CURL_TIMED_OUT) || throw new TimedOut("did not answer $url: " . strtok($output, "\n") . ", log {$contender->log()}");
        if (!str_ends_with($output, "\n$expected") || !$workload->accepts(substr($output, 0, -strlen("\n$expected")))) {
            $seen = json_encode(substr($output, 0, 100) . ' … ' . substr($output, -100), JSON_INVALID_UTF8_SUBSTITUTE);
            throw new BenchmarkException("answers $url wrongly: $seen, log {$contender->log()}");
        }
        $this->checked[$contender->system . $url] = true;
    }

    private function measureIdle(Contender $contender, int $connections): Idle
    {
        try {
            if (!$contender->keepsAlive) {
                throw new BenchmarkException('closes every connection after its answer');
            }
            $contender->stop();
            $server = $contender->server($this->environment, $this->serverPin, $this->logs);
            IdleConnections::open($contender->port(), Workload::Hello->path(), 100)->close();
            usleep(self::SETTLE_MICROSECONDS);
            $before = $server->tree->residentMib();
            $idle = IdleConnections::open($contender->port(), Workload::Hello->path(), $connections);
            usleep(self::SETTLE_MICROSECONDS);
            $after = $server->tree->residentMib();
            $closed = $idle->closedByServer();
            $idle->close();
            $closed === 0 || throw new BenchmarkException("closed $closed of the $connections connections");

            return Idle::measured($contender->system, $connections, $before, $after);
        } catch (BenchmarkException $failure) {
            return Idle::failed($contender->system, $connections, $failure->getMessage(), $contender->log());
        }
    }
}
