<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;
use Weft\Bench\TimedOut;

/** Runs a program that generates load. */
final class Tool
{
    /** Of timeout(1): when SIGTERM was enough, and when it was not. */
    private const TIMED_OUT = [124, 137];
    /** Between SIGTERM and SIGKILL. */
    private const GRACE_SECONDS = 5;

    /**
     * @param list<string> $command
     * @param float $timeout seconds after which it is ended
     *
     * @return string its output, including errors
     *
     * @throws TimedOut when it exceeds the time
     * @throws BenchmarkException when it exits with another code than 0
     */
    public static function output(array $command, float $timeout): string
    {
        // In the foreground it stays in this process's group, so that Ctrl-C reaches the program.
        $line = implode(' ', array_map(escapeshellarg(...), ['timeout', '--foreground', '--kill-after=' . self::GRACE_SECONDS, (string) $timeout, ...$command]));
        exec("$line 2>&1", $lines, $code);
        $output = implode("\n", $lines);
        !in_array($code, self::TIMED_OUT, true) || throw new TimedOut(implode(' ', $command) . " did not end within $timeout s: " . substr($output, -500));
        $code === 0 || throw new BenchmarkException(implode(' ', $command) . " exited with code $code: " . substr($output, -500));

        return $output;
    }
}
