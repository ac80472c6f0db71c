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
     * Puts a server that the one under measurement calls on the core of the load generator, with all that it starts from now on. The kernel would
     * run each of its processes where it was woken, on the core of the server under measurement, and that one instead of it.
     *
     * @param list<int> $pids
     *
     * @return \Closure(): void puts those of them that still live, and what the first has started since, where they were
     *
     * @throws BenchmarkException
     */
    public static function besideLoad(array $pids): \Closure
    {
        if (Machine::cores() < 2 || $pids === []) {
            return static function (): void {};
        }
        $before = self::affinity($pids[0]) ?? throw new BenchmarkException("process {$pids[0]} has ended");
        array_map(static fn (int $pid): bool => self::move($pid, '1'), $pids);
        if (self::affinity($pids[0]) !== '1') {
            throw new BenchmarkException("process {$pids[0]} cannot be put on the core of the load generator: run this as root");
        }

        return static function () use ($pids, $before): void {
            array_map(static fn (int $pid): bool => self::move($pid, $before), (new ProcessTree($pids[0]))->pids());
        };
    }

    /** Null where there is no such process. */
    private static function affinity(int $pid): ?string
    {
        return preg_match('/^Cpus_allowed_list:\s+(\S+)$/m', (string) @file_get_contents("/proc/$pid/status"), $line) === 1 ? $line[1] : null;
    }

    private static function move(int $pid, string $cores): bool
    {
        exec("taskset --all-tasks --pid --cpu-list $cores $pid 2>&1", $output, $code);

        return $code === 0;
    }

    /** @return list<string> */
    private static function pin(int $core): array
    {
        return Machine::cores() > 1 ? ['taskset', '--cpu-list', (string) $core] : [];
    }
}
