<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;

/** The options of the command line. */
final class Options
{
    public const USAGE = <<<'USAGE'
        usage: bench/rinha/run [--short] [--only=NAME] [--unlimited] [--extension=FILE] [--out=FILE]

          --short      the same rates within 23 seconds instead of 205
          --only       single or shared: only this way to insert, one by one or sharing statements; both by default
          --unlimited  without limits on processor time and memory
          --extension  libweft.so, target/release/libweft.so
          --out        where the results go, bench/out/rinha.json

        Exits with 1 when a person is missing or a request failed.

        USAGE;

    private const SHORT = 1 / 9;

    /** @param non-empty-list<Inserts> $inserts */
    private function __construct(
        public readonly array $inserts,
        public readonly float $scale,
        public readonly bool $limited,
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
        $line = CommandLine::parse($arguments, [
            'short' => '',
            'only' => '',
            'unlimited' => '',
            'extension' => "$root/target/release/libweft.so",
            'out' => "$root/bench/out/rinha.json",
        ]);

        return new self(
            array_map(self::inserts(...), $line->names('only')) ?: Inserts::cases(),
            $line->flag('short') ? self::SHORT : 1.0,
            !$line->flag('unlimited'),
            $line->text('extension'),
            $line->text('out'),
        );
    }

    /** @throws BenchmarkException */
    private static function inserts(string $name): Inserts
    {
        return Inserts::tryFrom($name)
            ?? throw new BenchmarkException("there are no inserts '$name', there are: " . implode(' ', array_column(Inserts::cases(), 'value')));
    }
}
