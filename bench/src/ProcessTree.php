<?php

declare(strict_types=1);

namespace Weft\Bench;

/** What a server and everything it starts has used so far, from /proc. */
final class ProcessTree
{
    /** Fields of /proc/PID/stat after the command's name, which may hold spaces: `man 5 proc`, less the first two. */
    private const STATE = 0;
    private const PARENT = 1;
    private const SESSION = 3;
    private const TICKS = [11, 12, 13, 14];
    private const TICKS_PER_SECOND = 100;

    /** @param int $root pid of a server; a session leader stands for all processes of its session */
    public function __construct(private readonly int $root)
    {
    }

    /** User and system seconds of its processes, and of those of their children that have ended and were waited for; 0 when it is gone. */
    public function cpuSeconds(): float
    {
        $ticks = 0;
        foreach ($this->stats() as $fields) {
            foreach (self::TICKS as $field) {
                $ticks += (int) $fields[$field];
            }
        }

        return $ticks / self::TICKS_PER_SECOND;
    }

    /** Resident memory in MiB: the private memory of each process and the shared memory of the largest. */
    public function residentMib(): float
    {
        $own = $shared = 0;
        foreach (array_keys($this->stats()) as $pid) {
            preg_match_all('/^(Shared|Private)_\w+:\s+(\d+) kB/m', (string) @file_get_contents("/proc/$pid/smaps_rollup"), $lines, PREG_SET_ORDER);
            $sum = ['Shared' => 0, 'Private' => 0];
            foreach ($lines as [, $kind, $size]) {
                $sum[$kind] += (int) $size;
            }
            $own += $sum['Private'];
            $shared = max($shared, $sum['Shared']);
        }

        return ($own + $shared) / 1024;
    }

    /** Whether the main thread of one of its processes runs or waits for a core. */
    public function wantsCore(): bool
    {
        return in_array('R', array_column($this->stats(), self::STATE), true);
    }

    /** @return list<int> pids that live */
    public function pids(): array
    {
        return array_keys(array_filter($this->stats(), static fn (array $fields): bool => $fields[self::STATE] !== 'Z'));
    }

    /**
     * Those of its session, which stay in it when their parent ends, and all descendants, some of which (those of PHP-FPM, the
     * backends of PostgreSQL) leave it.
     *
     * @return array<int, list<string>> fields of /proc/PID/stat by pid
     */
    private function stats(): array
    {
        $all = self::everybody();
        $found = array_filter(
            $all,
            fn (array $fields, int $pid): bool => $pid === $this->root || (int) $fields[self::SESSION] === $this->root,
            ARRAY_FILTER_USE_BOTH,
        );
        do {
            $known = count($found);
            $found += array_filter($all, static fn (array $fields): bool => isset($found[(int) $fields[self::PARENT]]));
        } while (count($found) > $known);

        return $found;
    }

    /** @return array<int, list<string>> by pid */
    private static function everybody(): array
    {
        $stats = [];
        foreach (scandir('/proc') as $entry) {
            $stat = ctype_digit($entry) ? (string) @file_get_contents("/proc/$entry/stat") : '';
            if ($stat !== '') {
                $stats[(int) $entry] = explode(' ', substr($stat, strrpos($stat, ')') + 2));
            }
        }

        return $stats;
    }
}
