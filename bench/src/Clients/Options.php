<?php

declare(strict_types=1);

namespace Weft\Bench\Clients;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/clients/run [--rounds=N] [--only=LOAD,…] [--short] [--out=FILE]

          --rounds  of all clients in turns, 8; one more before them warms up and is not counted
          --only    publish consume select insert scan; all of them by default
          --short   a fifth of the operations, three rounds
          --out     file for the results, bench/out/clients.json

        USAGE;

    /** @param non-empty-list<Workload> $workloads */
    private function __construct(
        public readonly int $rounds,
        public readonly array $workloads,
        public readonly bool $short,
        public readonly string $out,
    ) {
    }

    /**
     * @param list<string> $arguments without the program's name
     * @param string $root the repository
     *
     * @throws BenchmarkException for an unknown option, load, or number of rounds
     */
    public static function parse(array $arguments, string $root): self
    {
        $short = in_array('--short', $arguments, true);
        $line = CommandLine::parse($arguments, ['short' => '', 'rounds' => $short ? '3' : '8', 'only' => '', 'out' => "$root/bench/out/clients.json"]);

        return new self($line->positive('rounds'), self::workloads($line->names('only')), $short, $line->text('out'));
    }

    /**
     * @param list<string> $names
     * @return non-empty-list<Workload>
     */
    private static function workloads(array $names): array
    {
        return $names === [] ? Workload::cases() : array_map(
            static fn (string $name): Workload => Workload::tryFrom($name)
                ?? throw new BenchmarkException("unknown load '$name'; the loads are " . implode(', ', array_column(Workload::cases(), 'value'))),
            $names,
        );
    }
}
