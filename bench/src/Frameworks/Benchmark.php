<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Cores;
use Weft\Bench\DiskFlush;
use Weft\Bench\HttpAnswer;
use Weft\Bench\Load\Wrk;
use Weft\Bench\Machine;
use Weft\Bench\Port;
use Weft\Bench\Progress;
use Weft\Bench\ResultsFile;
use Weft\Bench\Server;
use Weft\Bench\Services;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/**
 * Serves one application by several systems, one after the other, and measures requests per second, latency, memory and CPU.
 *
 * A framework is a directory of bench/frameworks with `weft.php`, `fpm.php`, `swoole.php`, `frankenphp.php`, `roadrunner.php` and `warm.php`.
 */
final class Benchmark
{
    /** Requests whose answers do not depend on chance, by endpoint: all systems must give the same. */
    private const SAME = ['page' => 'page?id=17', 'compute' => 'compute'];

    private const SLOTS = [1, 8, 32];

    /** Workers of a peer, at least, and those of a second start, by which the memory of one is measured. */
    private const LEAST_WORKERS = 4;
    private const MORE_WORKERS = 12;

    /** Seconds of load after which memory is compared. */
    private const MEMORY_LOAD_SECONDS = 3;

    private readonly string $logs;

    /** @var array<string, array<string, Memory>> by framework and peer */
    private array $memory = [];

    /** @var array<string, float> resident memory of Weft with the most slots, by framework */
    private array $weftMib = [];

    /** @var array<string, string> what the first system has answered, by framework and endpoint */
    private array $answers = [];

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->logs = "$root/bench/out/frameworks-logs";
    }

    /** @return list<array{system: string, framework: string, endpoint: string, slots: int, connections: int, per_s: list<float>, p99_ms: list<float>, rss_mib: float, cpu_us: list<float>, errors: int}> */
    public function run(): array
    {
        @mkdir($this->logs, recursive: true);
        getenv('DATABASE_URL') !== false || throw new BenchmarkException('DATABASE_URL is not set: run `make services` and `. var/services/env`');
        $this->fill();
        Machine::warnWhenBusy();
        $port = Port::free();
        putenv("FRAMEWORKS_API=http://127.0.0.1:$port");
        putenv("FRAMEWORKS_VAR={$this->logs}/var");
        $api = Server::start([PHP_BINARY, '-d', "extension={$this->options->extension}", "{$this->root}/bench/hooks/upstream.php"], ['PORT' => (string) $port], "{$this->logs}/upstream.log", $port);
        try {
            $rows = (new Services($this->root))->withDatabaseBesideLoad($this->measureAll(...));
        } finally {
            $api->stop();
        }
        ResultsFile::save($this->options->out, [
            'machine' => Machine::describe(Spread::of([DiskFlush::microseconds($this->logs)])),
            'versions' => array_filter(['weft' => Versions::weft($this->root), 'php' => PHP_VERSION, 'swoole' => Versions::swoole($this->options->swoole), 'frankenphp' => Versions::frankenPhp($this->options->frankenPhp), 'roadrunner' => Versions::roadRunner($this->options->roadRunner), 'nginx' => Versions::of('nginx -v')]),
            'memory' => $this->memory,
            'runs' => $rows,
        ]);

        return $rows;
    }

    /** @return list<array<string, mixed>> */
    private function measureAll(): array
    {
        $rows = $this->rowsBefore();
        $systems = [];
        foreach ($this->options->frameworks as $framework) {
            $this->warm($framework);
            $systems[$framework] = $this->systems($framework);
            $this->checkAll($framework, $systems[$framework]);
        }
        foreach ($systems as $framework => $ofFramework) {
            $this->measure($framework, $ofFramework, $rows);
        }

        return array_values($rows);
    }

    /**
     * A system that cannot serve is found before a quarter of an hour of measurements.
     *
     * @param list<array{string, int, list<string>}> $systems
     */
    private function checkAll(string $framework, array $systems): void
    {
        foreach ($systems as [$system, $slots, $command]) {
            $this->served($framework, $system, $slots, $command, function (Server $server, string $address) use ($framework): void {
                foreach ($this->options->endpoints as $endpoint) {
                    $this->check($framework, $endpoint, $address, $server);
                }
            });
        }
    }

    private function fill(): void
    {
        $url = parse_url((string) getenv('DATABASE_URL')) ?: [];
        $database = new \PDO(sprintf('pgsql:host=%s;port=%d;dbname=%s', $url['host'] ?? '', $url['port'] ?? 5432, ltrim($url['path'] ?? '', '/')), $url['user'] ?? '', $url['pass'] ?? '');
        $database->exec('CREATE TABLE IF NOT EXISTS frameworks_people (id int PRIMARY KEY, name varchar(255) NOT NULL, team varchar(255) NOT NULL)');
        $database->exec("INSERT INTO frameworks_people SELECT i, 'name_' || i, 'team_' || i % 1000 FROM generate_series(1, 10000) AS i ON CONFLICT DO NOTHING");
        $database->exec('CREATE INDEX IF NOT EXISTS frameworks_people_team ON frameworks_people (team)');
        $database->exec('VACUUM ANALYZE frameworks_people');
    }

    private function warm(string $framework): void
    {
        exec(implode(' ', array_map(escapeshellarg(...), [PHP_BINARY, '-d', "extension={$this->options->extension}", "{$this->root}/bench/frameworks/$framework/warm.php"])) . ' 2>&1', $lines, $code);
        $code === 0 || throw new BenchmarkException("$framework/warm.php failed: " . implode("\n", $lines));
    }

    /** @return list<array{string, int, list<string>}> name, slots and command */
    private function systems(string $framework): array
    {
        $php = [PHP_BINARY, '-d', 'opcache.enable_cli=1'];
        $directory = "{$this->root}/bench/frameworks/$framework";
        $weft = [...$php, '-d', "extension={$this->options->extension}", "$directory/weft.php"];
        $systems = [];
        foreach ($this->takesPart('weft') ? self::SLOTS : [] as $slots) {
            $systems[] = ['weft', $slots, $weft];
        }
        if ($this->takesPart('php-fpm') && is_executable(self::fpm()) && is_executable('/usr/sbin/nginx')) {
            $command = ["{$this->root}/bench/hooks/serve-fpm"];
            $systems[] = ['php-fpm', $this->memory($framework, 'php-fpm', $weft, $command)->workers, $command];
        }
        if ($this->takesPart('frankenphp') && $this->options->frankenPhp !== null) {
            $command = [$this->options->frankenPhp, 'run', '--config', "{$this->root}/bench/frameworks/Caddyfile", '--adapter', 'caddyfile'];
            foreach (array_unique([$this->memory($framework, 'frankenphp', $weft, $command)->workers, max(self::SLOTS)]) as $workers) {
                $systems[] = ['frankenphp', $workers, $command];
            }
        }
        if ($this->takesPart('roadrunner') && $this->options->roadRunner !== null) {
            $command = [$this->options->roadRunner, 'serve', '-c', "{$this->root}/bench/frameworks/rr.yaml"];
            foreach (array_unique([$this->memory($framework, 'roadrunner', $weft, $command)->workers, max(self::SLOTS)]) as $workers) {
                $systems[] = ['roadrunner', $workers, $command];
            }
        }
        if ($this->takesPart('swoole') && $this->options->swoole !== null && is_file("$directory/swoole.php")) {
            $systems[] = ['swoole', max(self::SLOTS), [...$php, '-d', "extension={$this->options->swoole}", "$directory/swoole.php"]];
        }

        return $systems;
    }

    private function takesPart(string $system): bool
    {
        return \in_array($system, $this->options->only, true);
    }

    private static function fpm(): string
    {
        return '/usr/sbin/php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION;
    }

    /** @return array<string, array<string, mixed>> by {@see key()} */
    private function rowsBefore(): array
    {
        if (!$this->options->appends || !is_file($this->options->out)) {
            return [];
        }
        $before = ResultsFile::load($this->options->out);
        $this->memory = array_map(static fn(array $peers): array => array_map(Memory::measuredBefore(...), $peers), $before['memory']);

        return array_combine(array_map(self::key(...), $before['runs']), $before['runs']);
    }

    /** @param array<string, mixed> $row */
    private static function key(array $row): string
    {
        return "{$row['framework']} {$row['endpoint']} {$row['system']} {$row['slots']} {$row['connections']}";
    }

    /**
     * @param list<array{string, int, list<string>}> $systems
     * @param array<string, array<string, mixed>> $rows
     */
    private function measure(string $framework, array $systems, array &$rows): void
    {
        $progress = new Progress($this->options->rounds * \count($systems));
        for ($round = 0; $round < $this->options->rounds; $round++) {
            foreach ($systems as [$system, $slots, $command]) {
                $progress->start("$framework, $system" . ($slots > 0 ? ", $slots" : ''));
                $this->race($framework, $system, $slots, $command, $rows);
                $progress->finish('done');
            }
        }
    }

    /**
     * How many workers of a peer take the memory that Weft with the most slots takes, both after the same load.
     *
     * @param list<string> $weft commands
     * @param list<string> $command
     */
    private function memory(string $framework, string $peer, array $weft, array $command): Memory
    {
        return $this->memory[$framework][$peer] ??= $this->compareMemory($framework, $weft, $peer, $command);
    }

    /**
     * @param list<string> $weft
     * @param list<string> $command
     */
    private function compareMemory(string $framework, array $weft, string $peer, array $command): Memory
    {
        $resident = function (string $system, int $slots, array $command) use ($framework): float {
            return $this->served($framework, $system, $slots, $command, function (Server $server, string $address) use ($framework): float {
                foreach (Options::ENDPOINTS as $endpoint) {
                    $this->check($framework, $endpoint, $address, $server);
                    Wrk::run("$address/$endpoint", max($this->options->connections), self::MEMORY_LOAD_SECONDS, Cores::load());
                }

                return $server->tree->residentMib();
            });
        };

        return Memory::compare(
            $this->weftMib[$framework] ??= $resident('weft', max(self::SLOTS), $weft),
            self::LEAST_WORKERS,
            $resident($peer, self::LEAST_WORKERS, $command),
            self::MORE_WORKERS,
            $resident($peer, self::MORE_WORKERS, $command),
        );
    }

    /**
     * @param list<string> $command
     * @param array<string, array<string, mixed>> $rows
     */
    private function race(string $framework, string $system, int $slots, array $command, array &$rows): void
    {
        $this->served($framework, $system, $slots, $command, function (Server $server, string $address) use ($framework, $system, $slots, &$rows): void {
            foreach ($this->options->endpoints as $endpoint) {
                $url = "$address/$endpoint";
                $this->check($framework, $endpoint, $address, $server);
                // Fills the caches and boots the instances.
                Wrk::run($url, max($this->options->connections), 1, Cores::load());
                $server->awaitIdle();
                foreach ($this->options->connections as $connections) {
                    $before = $server->tree->cpuSeconds();
                    $run = Wrk::run($url, $connections, $this->options->seconds, Cores::load());
                    $cpu = ($server->tree->cpuSeconds() - $before) / max(1, $run->requests) * 1e6;
                    $server->awaitIdle();
                    $started = ['system' => $system, 'framework' => $framework, 'endpoint' => $endpoint, 'slots' => $slots, 'connections' => $connections, 'per_s' => [], 'p99_ms' => [], 'rss_mib' => 0.0, 'cpu_us' => [], 'errors' => 0];
                    $row = &$rows[self::key($started)];
                    $row ??= $started;
                    $row['per_s'][] = round($run->perSecond(), 1);
                    $row['p99_ms'][] = round($run->latency->at(99), 2);
                    $row['cpu_us'][] = round($cpu, 1);
                    $row['rss_mib'] = max($row['rss_mib'], round($server->tree->residentMib(), 1));
                    $row['errors'] += $run->errors;
                    unset($row);
                }
            }
        });
    }

    /**
     * Starts a system, measures it and stops it.
     *
     * @template T
     *
     * @param list<string> $command
     * @param \Closure(Server, string): T $measure gets the address, `http://host:port`
     *
     * @return T
     */
    private function served(string $framework, string $system, int $slots, array $command, \Closure $measure): mixed
    {
        $port = Port::free();
        $environment = [
            'PORT' => (string) $port,
            'SLOTS' => (string) $slots,
            'FRAMEWORKS_SYSTEM' => $system,
            'RUN_DIRECTORY' => "{$this->logs}/fpm-$framework",
            'PHP_FPM' => self::fpm(),
            'WORKERS' => (string) $slots,
            'SCRIPT' => "{$this->root}/bench/frameworks/$framework/fpm.php",
        ];
        if ($system === 'frankenphp') {
            // GODEBUG as in its images.
            $environment = ['ROOT' => "{$this->root}/bench/frameworks/$framework", 'SCRIPT' => "{$this->root}/bench/frameworks/$framework/frankenphp.php", 'GODEBUG' => 'cgocheck=0'] + $environment;
        }
        if ($system === 'roadrunner') {
            $environment += ['COMMAND' => PHP_BINARY . " -d opcache.enable_cli=1 {$this->root}/bench/frameworks/$framework/roadrunner.php"];
        }
        $server = Server::start([...Cores::server(), ...$command], $environment, "{$this->logs}/$framework-$system-$slots.log", $port);
        try {
            return $measure($server, "http://127.0.0.1:$port");
        } finally {
            $server->stop();
        }
    }

    /** The system must be up, and answer as the one before it did. */
    private function check(string $framework, string $endpoint, string $address, Server $server): void
    {
        $url = "$address/" . self::SAME[$endpoint];
        $answer = @HttpAnswer::of($url, ['timeout' => 60]);
        if ($answer->status !== 200) {
            throw new BenchmarkException("$url is not served: " . ($answer->headers[0] ?? 'no answer') . ' ' . substr((string) $answer->body, 0, 500) . "\n" . $server->logTail());
        }
        $expected = $this->answers["$framework $endpoint"] ??= (string) $answer->body;
        if ($answer->body !== $expected) {
            throw new BenchmarkException("$url is answered by:\n{$answer->body}\nThe system before it answered:\n$expected\n" . $server->logTail());
        }
    }
}
