<?php

declare(strict_types=1);

namespace Weft\Bench\Hooks;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/hooks/run --extension=FILE [--rounds=N] [--short] [--out=FILE]

          --extension  libweft.so, built with optimisations
          --rounds     of all contenders in turns, 6
          --short      two rounds of a second each
          --out        file for the results, bench/out/hooks.json

        SWOOLE_EXTENSION=/path/swoole.so adds Swoole with all its hooks to the comparison of servers.

        USAGE;

    private function __construct(
        public readonly string $extension,
        public readonly int $rounds,
        public readonly int $seconds,
        public readonly string $out,
        public readonly ?string $swoole,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option or a file that is missing
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, ['short' => '', 'extension' => "$root/target/release/libweft.so", 'rounds' => $short ? '2' : '6', 'out' => "$root/bench/out/hooks.json"]);
        $swoole = getenv('SWOOLE_EXTENSION') ?: null;
        foreach (array_filter([$line->text('extension'), $swoole]) as $file) {
            is_file($file) || throw new BenchmarkException("there is no $file");
        }

        return new self($line->text('extension'), $line->positive('rounds'), $short ? 1 : 2, $line->text('out'), $swoole);
    }
}
