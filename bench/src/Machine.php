<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Describes the environment of a result in one line. */
final class Machine
{
    private const MOST_BUSY_CORES = 0.5;
    private const TICKS_PER_SECOND = 100;

    /** @param Spread $flush the times of DiskFlush before each run */
    public static function describe(Spread $flush): string
    {
        return implode(', ', [
            self::firstMatch('/proc/cpuinfo', '/^model name\s*: (.+)$/m') ?? php_uname('m'),
            self::cores() . ' cores',
            sprintf('%.0f GiB', (int) self::firstMatch('/proc/meminfo', '/^MemTotal:\s+(\d+)/m') / 1024 ** 2),
            self::firstMatch('/etc/os-release', '/^PRETTY_NAME="?([^"\n]+)/m') ?? PHP_OS,
            'Linux ' . preg_replace('/[^0-9.].*/', '', php_uname('r')),
            "fdatasync {$flush->format(0)} µs",
        ]);
    }

    /** Says so when others keep more than half a core busy, which is enough to make a comparison of single processes unfair. */
    public static function warnWhenBusy(): void
    {
        $busy = self::busyCores();
        if ($busy > self::MOST_BUSY_CORES) {
            fwrite(STDERR, sprintf("Others keep %.1f cores busy: the numbers will not be comparable.\n", $busy));
        }
    }

    /** Measured for a second: the load average would still speak of the benchmark before this one. */
    public static function busyCores(): float
    {
        $before = self::busyTicks();
        $started = microtime(true);
        usleep(1_000_000);

        return (self::busyTicks() - $before) / self::TICKS_PER_SECOND / (microtime(true) - $started);
    }

    public static function cores(): int
    {
        return preg_match_all('/^processor\s*:/m', (string) @file_get_contents('/proc/cpuinfo'));
    }

    /** Of all cores since the start of the system: everything but idle time and waiting for disks, which are columns 4 and 5. */
    private static function busyTicks(): int
    {
        $columns = preg_split('/\s+/', (string) self::firstMatch('/proc/stat', '/^cpu (.+)$/m')) ?: [];

        return array_sum(array_map(intval(...), array_slice($columns, 0, 3))) + array_sum(array_map(intval(...), array_slice($columns, 5, 3)));
    }

    private static function firstMatch(string $file, string $pattern): ?string
    {
        return preg_match($pattern, (string) @file_get_contents($file), $match) ? trim($match[1]) : null;
    }
}
