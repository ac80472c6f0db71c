<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/noop/run [--messages=N] [--runs=N] [--only=NAME,…] [--short] [--extension=FILE] [--out=FILE]

          --messages   published and consumed by each contender in each run, 200000
          --runs       rounds, 3; in each all take turns in an order of its own
          --only       weft-client weft-bus go ext-amqp perf-test; all of them by default
          --short      40000 messages, one round
          --extension  libweft.so, target/release/libweft.so
          --out        where the results go, bench/out/bus-noop.json

        USAGE;

    /** @param list<string> $only */
    private function __construct(
        public readonly int $messages,
        public readonly int $runs,
        public readonly array $only,
        public readonly string $extension,
        public readonly string $out,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option or a number below 1
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'messages' => $short ? '40000' : '200000',
            'runs' => $short ? '1' : '3',
            'only' => '',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/bus-noop.json",
        ]);

        return new self($line->positive('messages'), $line->positive('runs'), $line->names('only'), $line->text('extension'), $line->text('out'));
    }
}
