<?php

declare(strict_types=1);

namespace Weft\Bench\State;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/state/run --extension=FILE [--requests=N] [--slots=N,…] [--frameworks=NAME,…] [--short] [--out=FILE]

          --extension   libweft.so
          --requests    of each run, 100,000
          --slots       application instances, a run for each number, 8 and 64
          --frameworks  those of bench/state/*.php, all
          --short       5,000 requests
          --database    URL of the database, by default DATABASE_URL, or an SQLite file
          --out         file for the results, bench/out/state.json

        USAGE;

    /**
     * @param list<int> $slots
     * @param list<string> $frameworks
     */
    private function __construct(
        public readonly string $extension,
        public readonly int $requests,
        public readonly array $slots,
        public readonly array $frameworks,
        public readonly string $database,
        public readonly string $out,
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
        $line = CommandLine::parse($arguments, [
            'extension' => "$root/target/release/libweft.so",
            'requests' => '0',
            'slots' => '8,64',
            'frameworks' => implode(',', array_map(static fn(string $file): string => basename($file, '.php'), glob("$root/bench/state/*.php") ?: [])),
            'short' => '0',
            'database' => (string) getenv('DATABASE_URL'),
            'out' => "$root/bench/out/state.json",
        ]);
        foreach ($line->names('frameworks') as $framework) {
            is_file("$root/bench/state/$framework.php") || throw new BenchmarkException("there is no bench/state/$framework.php");
        }
        is_file($line->text('extension')) || throw new BenchmarkException("there is no {$line->text('extension')}");
        $requests = $line->text('requests') !== '0' ? $line->positive('requests') : ($line->flag('short') ? 5_000 : 100_000);

        return new self((string) realpath($line->text('extension')), $requests, $line->positives('slots'), $line->names('frameworks'), $line->text('database'), $line->text('out'));
    }
}
