<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

use Weft\Bench\BenchmarkException;

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
        $values = $short ? ['messages' => '40000', 'runs' => '1'] : ['messages' => '200000', 'runs' => '3'];
        $values += ['only' => '', 'extension' => "$root/target/release/libweft.so", 'out' => "$root/bench/out/bus-noop.json"];
        foreach (array_diff($arguments, ['--short']) as $argument) {
            if (!preg_match('/^--([a-z]+)=(.+)$/', $argument, $match) || !isset($values[$match[1]])) {
                throw new BenchmarkException("unknown option $argument\n" . self::USAGE);
            }
            $values[$match[1]] = $match[2];
        }
        foreach (['messages', 'runs'] as $name) {
            ctype_digit($values[$name]) && (int) $values[$name] > 0
                || throw new BenchmarkException("--$name must be a number above 0, got '{$values[$name]}'");
        }

        return new self(
            (int) $values['messages'],
            (int) $values['runs'],
            $values['only'] === '' ? [] : explode(',', $values['only']),
            $values['extension'],
            $values['out'],
        );
    }
}
