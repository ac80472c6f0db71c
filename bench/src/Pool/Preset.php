<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

/** One of the five loads of the published benchmark, with its published results. */
final class Preset
{
    /**
     * @param string $name the two with and without a pool share it
     * @param array<string, string> $parameters of the runner
     * @param int $connections of the load generator
     * @param float $requestSeconds least mean time of a request: its longest query
     * @param float $cpuSeconds that a request keeps its worker busy for, by the clock
     * @param float $publishedRps requests per second on the undisclosed machine of the publication, of 16 logical processors
     * @param float $publishedErrors share of them that failed, 0 to 1
     * @param bool $isSwoole whether peers/swoole answers instead of runner.php
     */
    private function __construct(
        public readonly string $name,
        public readonly bool $pool,
        public readonly array $parameters,
        public readonly int $connections,
        private readonly float $requestSeconds,
        private readonly float $cpuSeconds,
        public readonly float $publishedRps,
        public readonly float $publishedErrors,
        public readonly bool $isSwoole = false,
    ) {
    }

    /** @return list<self> */
    public static function all(): array
    {
        $queries = self::parameters(queries: 10, milliseconds: [1, 10], cpu: 0) + ['pool.size' => '100', 'pool.minimum_idle' => '100'];
        $compute = self::parameters(queries: 1, milliseconds: [20, 20], cpu: 20);
        $slow = self::parameters(queries: 1, milliseconds: [1, 1], cpu: 0)
            + ['pool.minimum_idle' => '1', 'connection.min_delay_sec' => '0.1', 'connection.max_delay_sec' => '0.1'];

        return [
            new self('10 queries', false, $queries, 64, self::longestOfTen(), 0.0, 426.94, 1736 / 4280),
            new self('10 queries', true, $queries, 64, self::longestOfTen(), 0.0, 5642.51, 0.0),
            new self('20 ms of CPU', false, $compute, 16, 0.02, 0.02, 359.81, 0.0),
            new self('20 ms of CPU', true, $compute, 16, 0.02, 0.02, 634.84, 0.0),
            new self('slow connect', true, $slow, 64, 0.001, 0.0, 39859.03, 0.0),
        ];
    }

    /** The same load for Swoole with the connections that its users write: {@see SwooleConnections}. */
    public function forSwoole(): self
    {
        return new self(
            "$this->name, Swoole",
            $this->pool,
            $this->parameters,
            $this->connections,
            $this->requestSeconds,
            $this->cpuSeconds,
            $this->publishedRps,
            $this->publishedErrors,
            true,
        );
    }

    /**
     * The most requests per second there can be: no connection of the load generator has two at a time, and no worker computes
     * for two. Computing ends by the clock, as in the publication, so that more workers than processors compute at a time.
     *
     * @param int $cores that the runner's defaults are multiples of
     */
    public function ceiling(int $cores): float
    {
        $waiting = $this->connections / max($this->requestSeconds, $this->cpuSeconds);
        $workers = Settings::parse($this->arguments(), $cores)->number('server.worker_num');

        return $this->cpuSeconds > 0.0 ? min($waiting, $workers / $this->cpuSeconds) : $waiting;
    }

    /** @return list<string> arguments of the runner */
    public function arguments(): array
    {
        $arguments = ['--pool.enabled=' . ($this->pool ? 'on' : 'off')];
        foreach ($this->parameters as $name => $value) {
            $arguments[] = "--$name=$value";
        }

        return $arguments;
    }

    /**
     * @param array{int, int} $milliseconds shortest and longest query
     * @param int $cpu milliseconds
     *
     * @return array<string, string>
     */
    private static function parameters(int $queries, array $milliseconds, int $cpu): array
    {
        return [
            'scenario.query_per_request' => (string) $queries,
            'connection.min_query_duration_sec' => (string) ($milliseconds[0] / 1000),
            'connection.max_query_duration_sec' => (string) ($milliseconds[1] / 1000),
            'scenario.cpu_load_per_request_min_sec' => (string) ($cpu / 1000),
            'scenario.cpu_load_per_request_max_sec' => (string) ($cpu / 1000),
        ];
    }

    /** The mean of the longest of ten queries, each of 1 to 10 whole milliseconds. */
    private static function longestOfTen(): float
    {
        $mean = 0.0;
        for ($milliseconds = 1; $milliseconds <= 10; ++$milliseconds) {
            $mean += $milliseconds * (($milliseconds / 10) ** 10 - (($milliseconds - 1) / 10) ** 10);
        }

        return $mean / 1000;
    }
}
