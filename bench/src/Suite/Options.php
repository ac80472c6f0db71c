<?php

declare(strict_types=1);

namespace Weft\Bench\Suite;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/run [--short] [--only=NAME,…] [--matrix] [--compare=DIRECTORY] [--extension=FILE]

          --short      every benchmark in its short mode: the shape of all tables in about six minutes; without it about 40
          --only       of bus pool http grpc rinha; all of them by default
          --matrix     the bus with transient and persistent messages, without and with confirms, in place of its race
          --compare    a directory with bus.json etc. of another commit: reports what became slower
          --extension  libweft.so, target/release/libweft.so

        Runs one benchmark after the other with servers of this checkout, stops those it had to start, and goes on when
        one fails. Results are in bench/out/NAME.json, what was printed in bench/out/logs/NAME.log, the page of all of
        it in bench/out/report.html. Exits with 1 when a benchmark failed or became slower.

        USAGE;

    /** @param non-empty-list<Entry> $entries */
    private function __construct(
        public readonly bool $short,
        public readonly array $entries,
        public readonly bool $matrix,
        public readonly string $compare,
        public readonly string $extension,
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
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'only' => '',
            'matrix' => '',
            'compare' => '',
            'extension' => "$root/target/release/libweft.so",
        ]);
        $compare = $line->text('compare');
        $compare === '' || is_dir($compare) || throw new BenchmarkException("--compare must be a directory, got '$compare'");

        return new self(
            $line->flag('short'),
            array_map(self::entry(...), $line->names('only')) ?: Entry::cases(),
            $line->flag('matrix'),
            $compare,
            $line->text('extension'),
        );
    }

    private static function entry(string $name): Entry
    {
        return Entry::tryFrom($name) ?? throw new BenchmarkException(
            "there is no benchmark '$name', there are: " . implode(' ', array_column(Entry::cases(), 'value')),
        );
    }
}
