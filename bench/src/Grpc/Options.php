<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/grpc/run [--short] [--rounds=N] [--long=N] [--seconds=N] [--tools=NAME,…] [--only=NAME,…]
                              [--extension=FILE] [--out=FILE]

          --short      one round, long turns of 5000 calls
          --rounds     rounds, 3; in each every contender takes its turn, in another order
          --long       calls of a long turn, 20000
          --seconds    of a turn with a canned body, 1
          --tools      ghz,h2load; both by default
          --only       contenders: weft weft-google-protobuf go tonic node; all of them by default
          --extension  libweft.so, target/release/libweft.so
          --out        where the results go, bench/out/grpc.json

        Exits with 1 when a contender failed.

        USAGE;

    /**
     * @param list<string> $tools
     * @param list<string> $only
     */
    private function __construct(
        public readonly int $rounds,
        public readonly int $long,
        public readonly int $seconds,
        public readonly array $tools,
        public readonly array $only,
        public readonly string $extension,
        public readonly string $out,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'rounds' => $short ? '1' : '3',
            'long' => $short ? '5000' : '20000',
            'seconds' => '1',
            'tools' => 'ghz,h2load',
            'only' => '',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/grpc.json",
        ]);

        return new self(
            $line->positive('rounds'),
            $line->positive('long'),
            $line->positive('seconds'),
            $line->names('tools'),
            $line->names('only'),
            $line->text('extension'),
            $line->text('out'),
        );
    }
}
