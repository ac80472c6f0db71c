<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Runs a program that generates load. */
final class Tool
{
    /**
     * @param list<string> $command
     * @param float $timeout seconds after which it is ended
     *
     * @return string what it printed, errors included
     *
     * @throws BenchmarkException when it exits with another code than 0, or exceeds the time (124)
     */
    public static function output(array $command, float $timeout): string
    {
        $line = implode(' ', array_map(escapeshellarg(...), ['timeout', (string) $timeout, ...$command]));
        exec("$line 2>&1", $lines, $code);
        $output = implode("\n", $lines);
        if ($code !== 0) {
            throw new BenchmarkException(implode(' ', $command) . " exited with code $code: " . substr($output, -500));
        }

        return $output;
    }
}
