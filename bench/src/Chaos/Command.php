<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\BenchmarkException;

use function Weft\delay;

/** Runs programs without blocking other tasks. */
final class Command
{
    /**
     * @param list<string> $command
     * @param array<string, string> $environment added to this process's own
     *
     * @throws BenchmarkException when it fails
     */
    public static function run(array $command, array $environment, string $log): void
    {
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['file', $log, 'a'], ['file', $log, 'a']], $pipes, null, $environment + getenv())
            ?: throw new BenchmarkException("cannot start {$command[0]}");
        while (($status = proc_get_status($process))['running']) {
            delay(0.02);
        }
        proc_close($process);
        if ($status['exitcode'] !== 0) {
            throw new BenchmarkException(implode(' ', $command) . " exited with code {$status['exitcode']}, log: {$log}");
        }
    }
}
