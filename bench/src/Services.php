<?php

declare(strict_types=1);

namespace Weft\Bench;

/** The servers of scripts/services: RabbitMQ, PostgreSQL and MariaDB of this checkout, on ports of their own. */
final class Services
{
    /** @var list<string> those that were started here */
    private array $started = [];

    /** @param string $root the repository */
    public function __construct(private readonly string $root)
    {
    }

    /**
     * Starts those that do not run.
     *
     * @param list<string> $names of rabbitmq, postgres and mariadb
     *
     * @throws BenchmarkException
     */
    public function start(array $names): void
    {
        exec("{$this->script()} status", $lines);
        foreach ($names as $name) {
            if (preg_grep("/^$name +running/", $lines) === []) {
                $this->started[] = $name;
                $this->run('start', $name);
            }
        }
    }

    /**
     * Stops those that {@see start()} has started, and no other. One that does not stop costs no result: it is named on the error stream.
     *
     * @param list<string> $needed names of those that go on
     */
    public function stop(array $needed = []): void
    {
        foreach (array_diff($this->started, $needed) as $name) {
            try {
                $this->run('stop', $name);
            } catch (BenchmarkException $failure) {
                fwrite(STDERR, "{$failure->getMessage()}\n");
            }
        }
        $this->started = array_values(array_intersect($this->started, $needed));
    }

    /** Of the first process of the server `$name`, null where it does not run. */
    public function pid(string $name): ?int
    {
        exec("{$this->script()} status", $lines);
        $line = current(preg_grep("/^$name +running +pid \\d+/", $lines));

        return $line === false ? null : (int) preg_replace('/^.* pid (\d+).*$/', '$1', $line);
    }

    /**
     * Where they are: AMQP_URL, DATABASE_URL and so on.
     *
     * @return array<string, string>
     *
     * @throws BenchmarkException when none has been started
     */
    public function variables(): array
    {
        return self::read((getenv('WEFT_VAR') ?: "{$this->root}/var") . '/services/env');
    }

    /**
     * @param string $file that scripts/services has written
     *
     * @return array<string, string>
     */
    public static function read(string $file): array
    {
        preg_match_all("/^export (\\w+)='(.*)'$/m", (string) @file_get_contents($file), $lines, PREG_SET_ORDER);

        return $lines !== [] ? array_column($lines, 2, 1) : throw new BenchmarkException("$file is not there: run `make services`");
    }

    /**
     * Calls `$measure` with PostgreSQL on the core of the load generator ({@see Cores::besideLoad()}).
     *
     * @template T
     *
     * @param \Closure(): T $measure
     *
     * @return T
     *
     * @throws BenchmarkException
     */
    public function withDatabaseBesideLoad(\Closure $measure): mixed
    {
        $restore = Cores::besideLoad($this->pid('postgres') ?? throw new BenchmarkException('PostgreSQL of this checkout does not run: run `make services`'));
        try {
            return $measure();
        } finally {
            $restore();
        }
    }

    private function run(string ...$arguments): void
    {
        passthru("{$this->script()} " . implode(' ', $arguments) . ' >&2', $code);
        $code === 0 || throw new BenchmarkException('scripts/services ' . implode(' ', $arguments) . " exited with code $code");
    }

    private function script(): string
    {
        return escapeshellarg("{$this->root}/scripts/services");
    }
}
