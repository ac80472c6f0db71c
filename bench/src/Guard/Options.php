<?php

declare(strict_types=1);

namespace Weft\Bench\Guard;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/guard/run [--extension=FILE] [--limits=FILE] [--write]

          --extension  libweft.so, target/release/libweft.so
          --limits     bench/guard/limits.json
          --write      makes what is counted now the limits

        Uses DATABASE_URL, as `make services` writes it to var/services/env, Valgrind and strace. Exits with 1 when a count is more than
        3 % above its limit.

        USAGE;

    private function __construct(public readonly string $extension, public readonly string $limits, public readonly bool $write)
    {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException
     */
    public static function parse(array $arguments, string $root): self
    {
        $line = CommandLine::parse($arguments, [
            'extension' => "$root/target/release/libweft.so",
            'limits' => "$root/bench/guard/limits.json",
            'write' => '',
        ]);
        $extension = $line->text('extension');
        is_file($extension) || throw new BenchmarkException("$extension is not there: run `make build`");

        return new self($extension, $line->text('limits'), $line->flag('write'));
    }
}
