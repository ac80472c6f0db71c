<?php

declare(strict_types=1);

namespace Weft\Bench\Guard;

use Weft\Bench\BenchmarkException;

/** Counts system calls. */
final class Strace
{
    /**
     * Of a process and its threads, while `$work` runs.
     *
     * @param \Closure(): void $work
     */
    public static function during(int $pid, string $file, \Closure $work): int
    {
        $strace = proc_open(['strace', '-f', '-c', '-o', $file, '-p', (string) $pid], [2 => ['pipe', 'w']], $pipes)
            ?: throw new BenchmarkException('cannot start strace');
        // It says so once it is attached.
        if (fgets($pipes[2]) === false) {
            throw new BenchmarkException("strace cannot attach to process $pid: is ptrace allowed?");
        }
        $work();
        proc_terminate($strace, SIGINT);
        stream_get_contents($pipes[2]);
        proc_close($strace);

        return self::total($file);
    }

    /** @param string $file the table of `strace -c` */
    public static function total(string $file): int
    {
        preg_match('/^\s*100\.00\s+\S+\s+\S+\s+(\d+)\s.*total$/m', (string) @file_get_contents($file), $match)
            || throw new BenchmarkException("strace has counted nothing in $file");

        return (int) $match[1];
    }
}
