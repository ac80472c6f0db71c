<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/scale/run [--short] [--curves=NAME,…] [--rounds=N] [--commands=N] [--seconds=N] [--extension=FILE] [--out=FILE]

          --short      one round of three values each
          --curves     concurrency,pool-size,backlog,http,grpc,tasks; all of them by default
          --rounds     rounds, 3; the backlog has one
          --commands   messages of a point of the bus, 20000
          --seconds    of load on a server, 2
          --extension  libweft.so, target/release/libweft.so
          --out        where the results go, bench/out/scale.json

        Starts RabbitMQ and PostgreSQL of this checkout where they do not run, and stops those it started. Exits with 1
        when a point could not be measured.

        USAGE;

    /** @param non-empty-list<Curve> $curves */
    private function __construct(
        public readonly bool $short,
        public readonly array $curves,
        public readonly int $rounds,
        public readonly int $commands,
        public readonly int $seconds,
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
            'curves' => '',
            'rounds' => $short ? '1' : '3',
            'commands' => $short ? '2000' : '20000',
            'seconds' => $short ? '1' : '2',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/scale.json",
        ]);

        return new self(
            $short,
            array_map(self::curve(...), $line->names('curves')) ?: Curve::cases(),
            $line->positive('rounds'),
            $line->positive('commands'),
            $line->positive('seconds'),
            $line->text('extension'),
            $line->text('out'),
        );
    }

    private static function curve(string $name): Curve
    {
        return Curve::tryFrom($name) ?? throw new BenchmarkException(
            "there is no curve '$name', there are: " . implode(' ', array_column(Curve::cases(), 'value')),
        );
    }
}
