<?php

declare(strict_types=1);

namespace Weft\Bench\Compare;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/compare OLD NEW [--all] [--tolerance=FRACTION]

          OLD, NEW     results files of one benchmark such as bus.json, or directories with several of them
          --all        shows unchanged values, too
          --tolerance  how much slower still counts as the same, 0.03

        Reports what became slower or faster: Hodges and Lehmann's estimate of new ÷ old with the 95 % interval of the
        exact rank-sum test of Mann and Whitney. Exits with 1 when something became slower or fails now, with 2 when nothing could
        be compared; at least four runs on each side are needed (or three and five).

        USAGE;

    /** @param array{string, string} $paths old and new */
    private function __construct(public readonly array $paths, public readonly bool $all, public readonly float $tolerance)
    {
    }

    /**
     * @param list<string> $arguments without the program's name
     *
     * @throws BenchmarkException
     */
    public static function parse(array $arguments): self
    {
        $paths = array_values(array_filter($arguments, static fn (string $argument): bool => !str_starts_with($argument, '--')));
        count($paths) === 2 || throw new BenchmarkException('two paths are needed, the old results and the new ones, got ' . count($paths));
        $line = CommandLine::parse(array_values(array_diff($arguments, $paths)), ['all' => '', 'tolerance' => '0.03']);
        $tolerance = $line->text('tolerance');
        is_numeric($tolerance) && $tolerance >= 0 || throw new BenchmarkException("--tolerance must be a number from 0, got '$tolerance'");

        return new self($paths, $line->flag('all'), (float) $tolerance);
    }

    /**
     * @return array<string, array{string, string}> old and new file by benchmark
     *
     * @throws BenchmarkException when there are none
     */
    public function files(): array
    {
        [$old, $new] = $this->paths;
        if (is_file($old) && is_file($new)) {
            $name = basename($new, '.json');

            return isset(Metric::IDENTITY[$name])
                ? [$name => [$old, $new]]
                : throw new BenchmarkException("$new is not named after a benchmark: " . implode(', ', array_keys(Metric::IDENTITY)));
        }
        $files = [];
        foreach (array_keys(Metric::IDENTITY) as $name) {
            is_file("$old/$name.json") && is_file("$new/$name.json") && $files[$name] = ["$old/$name.json", "$new/$name.json"];
        }

        return $files !== [] ? $files : throw new BenchmarkException("$old and $new have no results of the same benchmark");
    }
}
