<?php

declare(strict_types=1);

namespace Weft\Bench\Hooks;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Cores;
use Weft\Bench\DiskFlush;
use Weft\Bench\Load\Wrk;
use Weft\Bench\Machine;
use Weft\Bench\Port;
use Weft\Bench\Progress;
use Weft\Bench\Server;
use Weft\Bench\Services;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/** The whole measurement, from the command line to the results. Contenders take turns; each program runs in a process of its own. */
final class Benchmark
{
    /** Milliseconds of a wait. */
    private const WAIT = 200;
    private const CLIENTS = ['usleep', 'PDO pgsql', 'PDO mysql', 'mysqli', 'curl', 'file_get_contents', 'Guzzle', 'phpredis', 'exec'];

    private readonly string $bench;
    private readonly string $logs;
    private Progress $progress;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->bench = "$root/bench/hooks";
        $this->logs = "$root/bench/out/hooks-logs";
    }

    public function run(): Results
    {
        @mkdir($this->logs, recursive: true);
        foreach (['DATABASE_URL', 'WEFT_MYSQL_DSN'] as $variable) {
            getenv($variable) !== false || throw new BenchmarkException("$variable is not set: run `make services` and `. var/services/env`");
        }
        $this->fill();
        Machine::warnWhenBusy();
        $servers = [$this->startUpstream(), $this->startRedis()];
        try {
            $measures = fn (string $part): bool => in_array($part, $this->options->parts, true);
            $waits = $measures('waits') ? $this->waitTurns() : [];
            $costs = $measures('cost') ? $this->costTurns() : [];
            $servings = $measures('http') ? \count($this->options->loads) * \count($this->contenders()) : 0;
            $this->progress = new Progress($this->options->rounds * (\count($waits) + \count($costs)) + $servings);
            $results = new Results(
                Machine::describe(Spread::of([DiskFlush::microseconds($this->logs)])),
                $this->versions(),
                $this->rounds($waits, fn (array $turn): array => json_decode($this->php('waits.php', [$turn['system'], $turn['client'], (string) $turn['tasks'], (string) (self::WAIT / 1000)]), true, flags: JSON_THROW_ON_ERROR)),
                $this->rounds($costs, fn (array $turn): array => json_decode($this->php('cost.php', [$turn['system'], $turn['client'], (string) $turn['tasks'], (string) $this->options->seconds]), true, flags: JSON_THROW_ON_ERROR)),
                match (true) {
                    !$measures('http') => [],
                    $this->options->workers > 1 || $this->options->database === 'anywhere' => $this->serve(),
                    default => (new Services($this->root))->withDatabaseBesideLoad($this->serve(...)),
                },
            );
        } finally {
            foreach (array_filter($servers) as $server) {
                $server->stop();
            }
        }
        $results->save($this->options->out);

        return $results;
    }

    private function fill(): void
    {
        putenv('HTTP_URL=http://127.0.0.1');
        require_once "{$this->bench}/clients.php";
        $database = pgsql();
        $database->exec('CREATE TABLE IF NOT EXISTS hooks_people (id int PRIMARY KEY, name text NOT NULL, email text NOT NULL)');
        $database->exec("INSERT INTO hooks_people SELECT i, 'name_' || i, 'name@qwerty.root' FROM generate_series(1, 10000) AS i ON CONFLICT DO NOTHING");
        $database->exec('VACUUM ANALYZE hooks_people');
    }

    private function startUpstream(): Server
    {
        $port = Port::free();
        putenv("HTTP_URL=http://127.0.0.1:$port");

        return Server::start([PHP_BINARY, '-d', "extension={$this->options->extension}", "{$this->bench}/upstream.php"], ['PORT' => (string) $port], "{$this->logs}/upstream.log", $port);
    }

    private function startRedis(): ?Server
    {
        if (!is_executable('/usr/bin/redis-server')) {
            return null;
        }
        $port = Port::free();
        putenv("REDIS_PORT=$port");
        // By default Redis looks ten times a second for clients whose wait is over.
        $command = ['/usr/bin/redis-server', '--port', (string) $port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--hz', '500', '--dir', $this->logs];

        return Server::start($command, [], "{$this->logs}/redis.log", $port);
    }

    /** @return list<array{system: string, client: string, tasks: int, wait_ms: int}> */
    private function waitTurns(): array
    {
        $turns = [];
        $known = array_keys(waits());
        foreach (array_intersect(self::CLIENTS, $known) as $client) {
            foreach ([['weft', 10], ['weft', 100], ['blocking', 10]] as [$system, $tasks]) {
                // PostgreSQL and MariaDB accept a hundred connections and not many more.
                $turns[] = ['system' => $system, 'client' => $client, 'tasks' => str_contains($client, 'PDO pgsql') && $tasks === 100 ? 80 : $tasks, 'wait_ms' => self::WAIT];
            }
        }

        return $turns;
    }

    /** @return list<array{system: string, client: string, tasks: int}> */
    private function costTurns(): array
    {
        $turns = [];
        foreach (array_keys(requests()) as $client) {
            $turns[] = ['system' => 'blocking', 'client' => $client, 'tasks' => 1];
            foreach ($client === 'curl' ? ['weft'] : ['weft', 'weft-native'] as $system) {
                foreach ([1, 50] as $tasks) {
                    $turns[] = ['system' => $system, 'client' => $client, 'tasks' => $tasks];
                }
            }
        }

        return $turns;
    }

    /**
     * @template Turn of array{system: string, client: string, tasks: int}
     *
     * @param list<Turn> $turns
     * @param \Closure(Turn): array<string, float> $measure
     *
     * @return list<array<string, mixed>> the turns, with a list of what each round has measured
     */
    private function rounds(array $turns, \Closure $measure): array
    {
        for ($round = 0; $round < $this->options->rounds; ++$round) {
            foreach ($turns as $index => $turn) {
                $this->progress->start("{$turn['client']}, {$turn['tasks']} tasks, {$turn['system']}");
                foreach ($measure($turn) as $name => $value) {
                    $turns[$index][$name][] = $value;
                }
                $this->progress->finish('done');
            }
        }

        return $turns;
    }

    /** @param list<string> $arguments */
    private function php(string $program, array $arguments): string
    {
        $command = [...Cores::server(), PHP_BINARY, '-d', "extension={$this->options->extension}", '-d', 'opcache.enable_cli=1', "{$this->bench}/$program", ...$arguments];
        exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1', $lines, $code);
        $output = implode("\n", $lines);

        return $code === 0 ? $output : throw new BenchmarkException("$program " . implode(' ', $arguments) . " failed: $output");
    }

    /** @return array<string, list<string>> commands by system */
    private function contenders(): array
    {
        $php = [PHP_BINARY, '-d', 'opcache.enable_cli=1'];
        $weft = [...$php, '-d', "extension={$this->options->extension}", ...$this->options->workers > 1 ? ["{$this->root}/bin/weft", 'run'] : []];

        return array_intersect_key(array_filter([
            'weft' => [...$weft, "{$this->bench}/weft.php", ...$this->options->workers > 1 ? ["--workers={$this->options->workers}"] : []],
            'php-fpm' => is_executable(self::fpm()) && is_executable('/usr/sbin/nginx') ? ["{$this->bench}/serve-fpm"] : null,
            'swoole' => $this->options->swoole === null ? null : [...$php, '-d', "extension={$this->options->swoole}", "{$this->bench}/swoole.php", (string) $this->options->workers],
        ]), array_flip($this->options->only));
    }

    /**
     * @param list<string> $command
     *
     * @return list<string> nothing where the system itself takes all cores
     */
    private function pinned(array $command): array
    {
        return $this->options->workers > 1 ? [] : $command;
    }

    private static function fpm(): string
    {
        return '/usr/sbin/php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION;
    }

    /** @return list<array<string, mixed>> */
    private function serve(): array
    {
        $rows = [];
        foreach ($this->options->loads as $load) {
            $servers = [];
            try {
                foreach ($this->contenders() as $system => $command) {
                    $port = Port::free();
                    $environment = ['PORT' => (string) $port, 'RUN_DIRECTORY' => "{$this->logs}/fpm-$load", 'PHP_FPM' => self::fpm(), 'WORKERS' => $this->workers($servers)];
                    $servers[$system] = [Server::start([...$this->pinned(Cores::server()), ...$command], $environment, "{$this->logs}/$system-$load.log", $port), $port];
                }
                foreach ($servers as $system => [$server]) {
                    $this->progress->start("$load, $system");
                    // They accept connections while they still log in to PostgreSQL.
                    $server->awaitIdle();
                    $this->progress->finish('up');
                }
                array_push($rows, ...$this->race($load, $servers));
            } finally {
                foreach ($servers as [$server]) {
                    $server->stop();
                }
            }
        }

        return $rows;
    }

    /**
     * PHP-FPM gets as many workers as fit into the memory of Weft's process, which is started before it; a worker takes about 12 MiB.
     *
     * @param array<string, array{Server, int}> $servers
     */
    private function workers(array $servers): string
    {
        return (string) max(4, (int) round((isset($servers['weft']) ? $servers['weft'][0]->tree->residentMib() : 48.0) / 12.0));
    }

    /**
     * @param array<string, array{Server, int}> $servers with their ports
     *
     * @return list<array<string, mixed>>
     */
    private function race(string $load, array $servers): array
    {
        $rows = [];
        for ($round = 0; $round < $this->options->rounds; ++$round) {
            foreach ($this->options->connections as $connections) {
                foreach ($servers as $system => [$server, $port]) {
                    $before = $server->tree->cpuSeconds();
                    $run = Wrk::run("http://127.0.0.1:$port/$load", $connections, $this->options->seconds, $this->pinned(Cores::load()));
                    $cpu = ($server->tree->cpuSeconds() - $before) / max(1, $run->requests) * 1e6;
                    $server->awaitIdle();
                    $row = &$rows["$system $connections"];
                    $row ??= ['system' => $system, 'load' => $load, 'connections' => $connections, 'per_s' => [], 'cpu_us' => [], 'p50_ms' => [], 'p99_ms' => [], 'errors' => 0];
                    $row['per_s'][] = $run->perSecond();
                    $row['cpu_us'][] = $cpu;
                    $row['p50_ms'][] = $run->latency->at(50);
                    $row['p99_ms'][] = $run->latency->at(99);
                    $row['errors'] += $run->errors;
                    unset($row);
                }
            }
        }

        return array_values($rows);
    }

    /** @return array<string, string> */
    private function versions(): array
    {
        return array_filter([
            'weft' => Versions::weft($this->root),
            'php' => PHP_VERSION,
            'swoole' => $this->options->swoole === null ? null : trim((string) shell_exec(PHP_BINARY . ' -d extension=' . escapeshellarg($this->options->swoole) . " -r 'echo SWOOLE_VERSION;'")),
            'nginx' => Versions::of('nginx -v'),
            'postgresql' => (string) pgsql()->query('SHOW server_version')->fetchColumn(),
            'mariadb' => (string) mysql()->query('SELECT version()')->fetchColumn(),
        ]);
    }
}
