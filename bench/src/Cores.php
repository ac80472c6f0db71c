<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Keeps the server under measurement and the load generator off each other's core, where there are two. */
final class Cores
{
    /** @return list<string> to be put before the server's command: the first core is its */
    public static function server(): array
    {
        return self::pin(0);
    }

    /** @return list<string> to be put before the load generator's command: the second core is its */
    public static function load(): array
    {
        return self::pin(1);
    }

    /**
     * Puts a server that the one under measurement calls, such as its database, on the core of the load generator, with all that it has started and
     * will start. The kernel likes to run a process on the core where it is woken: that of the server under measurement, in place of it.
     *
     * @return \Closure(): void puts them back
     *
     * @throws BenchmarkException
     */
    public static function besideLoad(int $pid): \Closure
    {
        if (Machine::cores() < 2) {
            return static function (): void {};
        }
        $before = self::affinity($pid) ?? throw new BenchmarkException("process $pid has ended");
        self::move($pid, '1');
        if (self::affinity($pid) !== '1') {
            throw new BenchmarkException("process $pid cannot be put on the core of the load generator: run this as root");
        }

        return static fn () => self::move($pid, $before);
    }

    /** Null where there is no such process. */
    private static function affinity(int $pid): ?string
    {
        return preg_match('/^Cpus_allowed_list:\s+(\S+)$/m', (string) @file_get_contents("/proc/$pid/status"), $line) === 1 ? $line[1] : null;
    }

    private static function move(int $pid, string $cores): void
    {
        foreach ((new ProcessTree($pid))->pids() as $process) {
            // It may have ended meanwhile.
            exec("taskset --all-tasks --pid --cpu-list $cores $process 2>&1");
        }
    }

    /** @return list<string> */
    private static function pin(int $core): array
    {
        return Machine::cores() > 1 ? ['taskset', '--cpu-list', (string) $core] : [];
    }
}
