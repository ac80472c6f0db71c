<?php

declare(strict_types=1);

namespace Weft\Bench;

/** What the programs of bench/ have in common: help, exit codes and an end in order. */
final class Script
{
    /**
     * Exits with what `$main` returns, with 2 when the benchmark fails, and after a signal as a shell does.
     *
     * @param string $name for messages, such as bench/bus/run
     * @param \Closure(list<string>): int $main gets the arguments without the program's name
     */
    public static function run(string $name, string $usage, \Closure $main): never
    {
        $arguments = array_slice($_SERVER['argv'], 1);
        if (array_intersect($arguments, ['-h', '--help']) !== []) {
            exit(rtrim($usage) . "\n");
        }
        Interrupted::arm();
        try {
            exit($main($arguments));
        } catch (BenchmarkException | \PDOException $failure) {
            fwrite(STDERR, "$name: {$failure->getMessage()}\n");
            exit(2);
        } catch (Interrupted $signal) {
            fwrite(STDERR, "\n$name: {$signal->getMessage()}\n");
            exit(128 + $signal->getCode());
        }
    }
}
