<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Machine;

/** The runner's parameters, with the names and defaults of the runner it stands beside. */
final class Settings
{
    private const RANGES = [
        'scenario.cpu_load_per_request_min_sec' => 'scenario.cpu_load_per_request_max_sec',
        'connection.min_delay_sec' => 'connection.max_delay_sec',
        'connection.min_query_duration_sec' => 'connection.max_query_duration_sec',
    ];

    /** @param array<string, bool|int|float|string> $values */
    private function __construct(private readonly array $values)
    {
    }

    /**
     * What the command line of a runner says; `--help` and a mistake end the program.
     *
     * @param list<string> $argv
     */
    public static function ofCommandLine(array $argv): self
    {
        $arguments = array_slice($argv, 1);
        if (array_intersect($arguments, ['-h', '--help']) !== []) {
            exit(self::usage(Machine::cores()));
        }
        try {
            return self::parse($arguments, Machine::cores());
        } catch (BenchmarkException $failure) {
            fwrite(STDERR, "{$argv[0]}: {$failure->getMessage()}\n");
            exit(2);
        }
    }

    /**
     * @param list<string> $arguments `--name=value`
     * @param int $cores that the defaults are multiples of
     *
     * @throws BenchmarkException for an unknown name, which lists the valid ones, or an invalid value, which states the valid range
     */
    public static function parse(array $arguments, int $cores): self
    {
        $all = self::all($cores);
        $values = array_map(static fn (array $setting): bool|int|float|string => $setting[1], $all);
        foreach ($arguments as $argument) {
            [$name, $text] = explode('=', $argument, 2) + [1 => null];
            $setting = $all[substr($name, 2)] ?? null;
            if ($setting === null || !str_starts_with($name, '--')) {
                throw new BenchmarkException("unknown parameter $name, there are:\n  " . implode("\n  ", array_keys($all)));
            }
            $value = $text === null ? null : $setting[0]->parse($text);
            $values[substr($name, 2)] = $value ?? throw new BenchmarkException(sprintf(
                '%s must be %s, got %s',
                substr($name, 2),
                $setting[0]->description(),
                $text === null ? 'no value' : "'$text'",
            ));
        }

        return (new self($values))->consistent();
    }

    /** @param int $cores that the defaults are multiples of */
    public static function usage(int $cores): string
    {
        $lines = "usage: php bench/pool/runner.php [--NAME=VALUE]…\n\n";
        foreach (self::all($cores) as $name => [$type, $default, $meaning]) {
            $shown = is_bool($default) ? ($default ? 'on' : 'off') : (string) $default;
            $lines .= sprintf("  %-55s %-30s %s (%s)\n", $name, $shown === '' ? '(empty)' : $shown, $meaning, $type->description());
        }

        return "$lines\nGET /test runs the scenario: 200 when all of it worked, 500 otherwise. GET /shutdown ends the server (204).\n";
    }

    public function flag(string $name): bool
    {
        return $this->values[$name];
    }

    public function number(string $name): int
    {
        return $this->values[$name];
    }

    public function seconds(string $name): float
    {
        return $this->values[$name];
    }

    public function text(string $name): string
    {
        return $this->values[$name];
    }

    /** A random whole number of milliseconds between the two, in seconds. */
    public function randomSeconds(string $least, string $most): float
    {
        return random_int((int) round($this->seconds($least) * 1000), (int) round($this->seconds($most) * 1000)) / 1000;
    }

    private function consistent(): self
    {
        foreach (self::RANGES as $least => $most) {
            if ($this->seconds($least) > $this->seconds($most)) {
                throw new BenchmarkException("$least ({$this->seconds($least)}) must not be above $most ({$this->seconds($most)})");
            }
        }
        if ($this->number('pool.minimum_idle') > $this->number('pool.size')) {
            throw new BenchmarkException("pool.minimum_idle ({$this->number('pool.minimum_idle')}) must not be above pool.size ({$this->number('pool.size')})");
        }

        return $this;
    }

    /** @return array<string, array{SettingType, bool|int|float|string, string}> type, default and meaning by name */
    private static function all(int $cores): array
    {
        [$flag, $count, $number] = [SettingType::Boolean, SettingType::Count, SettingType::Number];
        [$seconds, $text] = [SettingType::Seconds, SettingType::Text];

        return [
            'pool.enabled' => [$flag, true, 'off opens a connection for every query'],
            'pool.size' => [$count, 4 * $cores, 'most connections of a worker'],
            'pool.minimum_idle' => [$number, 2 * $cores, 'idle connections it keeps'],
            'pool.idle_timeout_sec' => [$seconds, 30.0, 'after which more than those are closed'],
            'pool.max_lifetime_sec' => [$seconds, 300.0, 'after which a connection is replaced'],
            'pool.borrowing_timeout_sec' => [$seconds, 1.0, 'wait for a connection'],
            'pool.returning_timeout_sec' => [$seconds, 0.1, 'wait to give it back; Weft never waits for that'],
            'pool.max_item_reserving_for_update_waiting_time_sec' => [$seconds, 0.5, 'wait to replace a busy one; Weft does it when it is back'],
            'server.host' => [$text, '0.0.0.0', 'address to listen on'],
            'server.port' => [$count, 11111, 'port to listen on'],
            'server.backlog' => [$count, 512, 'connections that may wait to be accepted'],
            'server.worker_num' => [$count, 2 * $cores, 'worker processes'],
            'server.dispatch_mode' => [$number, 1, 'round robin elsewhere; with Weft the kernel spreads connections'],
            'server.max_connection' => [$count, 512 * 2 * $cores, 'connections of all workers'],
            'server.worker_max_concurrency' => [$count, 1024, 'requests at a time in a worker'],
            'scenario.query_per_request' => [$number, 2, 'queries of a request'],
            'scenario.parallel_queries_execution' => [$flag, true, 'off runs one after the other'],
            'scenario.cpu_load_per_request_min_sec' => [$seconds, 0.001, 'shortest computation of a request'],
            'scenario.cpu_load_per_request_max_sec' => [$seconds, 0.01, 'longest one'],
            'connection.dsn' => [$text, 'mysql:host=mysql;dbname=test', 'mysql:… or pgsql:… as for PDO, or a URL'],
            'connection.username' => [$text, 'root', ''],
            'connection.password' => [$text, '', ''],
            'connection.min_delay_sec' => [$seconds, 0.0, 'shortest pause that opening a connection is made to take'],
            'connection.max_delay_sec' => [$seconds, 0.0, 'longest one'],
            'connection.min_query_duration_sec' => [$seconds, 0.001, 'shortest query'],
            'connection.max_query_duration_sec' => [$seconds, 0.01, 'longest one'],
        ];
    }
}
