<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Says what a result was measured on, in one line. */
final class Machine
{
    /** @param Spread $flush what DiskFlush measured before each run */
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

    /** True when others keep more than half a core busy, which is enough to make a comparison of single processes unfair. */
    public static function isBusy(): bool
    {
        return sys_getloadavg()[0] > 0.5;
    }

    public static function warnWhenBusy(): void
    {
        if (self::isBusy()) {
            fwrite(STDERR, sprintf("The machine is busy (load %.1f): the numbers will not be comparable.\n", sys_getloadavg()[0]));
        }
    }

    public static function cores(): int
    {
        return preg_match_all('/^processor\s*:/m', (string) @file_get_contents('/proc/cpuinfo'));
    }

    private static function firstMatch(string $file, string $pattern): ?string
    {
        return preg_match($pattern, (string) @file_get_contents($file), $match) ? trim($match[1]) : null;
    }
}
