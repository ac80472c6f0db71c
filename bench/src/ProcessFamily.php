<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A server and its descendants, as the kernel accounts for them. By parenthood: each backend of PostgreSQL leads a session of its own. */
final class ProcessFamily
{
    /** Of Linux on every architecture PHP runs on (USER_HZ). */
    private const TICKS_PER_SECOND = 100;

    public function __construct(private readonly int $pid)
    {
    }

    /** User and system seconds since the start, those of children that have ended included. 0 when the process is gone. */
    public function cpuSeconds(): float
    {
        $parents = $ticks = [];
        foreach (glob('/proc/[0-9]*/stat') as $file) {
            // The name, in parentheses, may contain anything.
            if (preg_match('/^(\d+) \(.*\) (.*)$/s', (string) @file_get_contents($file), $match)) {
                $fields = explode(' ', $match[2]);
                $parents[(int) $match[1]] = (int) $fields[1];
                $ticks[(int) $match[1]] = array_sum(array_slice($fields, 11, 4));
            }
        }

        return self::sum($this->pid, $parents, $ticks) / self::TICKS_PER_SECOND;
    }

    /**
     * @param array<int, int> $parents by process
     * @param array<int, int> $ticks by process
     */
    private static function sum(int $pid, array $parents, array $ticks): int
    {
        $sum = $ticks[$pid] ?? 0;
        foreach (array_keys($parents, $pid, true) as $child) {
            $sum += self::sum($child, $parents, $ticks);
        }

        return $sum;
    }
}
