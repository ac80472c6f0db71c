<?php

declare(strict_types=1);

namespace Weft\Bench\Report;

use Weft\Bench\BenchmarkException;
use Weft\Bench\ResultsFile;

/** Where the results of the benchmarks are: in the repository as published, or in a directory as the runners leave them. */
final class Sources
{
    private const NAMES = ['bus', 'bus-matrix', 'bus-noop', 'pool', 'http', 'grpc', 'grpc-bounds', 'rinha', 'scale', 'suite'];

    /** @param array<string, string> $files by benchmark */
    private function __construct(public readonly string $name, private readonly array $files)
    {
    }

    /** @param string $root the repository */
    public static function published(string $root): self
    {
        $files = [];
        foreach (array_diff(self::NAMES, ['suite']) as $name) {
            $files[$name] = match ($name) {
                'bus-matrix' => "$root/bench/bus/matrix.json",
                'bus-noop' => "$root/bench/noop/results.json",
                'grpc-bounds' => "$root/bench/grpc/bounds.json",
                default => "$root/bench/$name/results.json",
            };
        }

        return new self('published', $files);
    }

    public static function directory(string $directory): self
    {
        return new self('directory', array_combine(self::NAMES, array_map(static fn (string $name): string => "$directory/$name.json", self::NAMES)));
    }

    /**
     * @return array<string, array<string, mixed>> results files by benchmark, those that are there
     *
     * @throws BenchmarkException when there is none
     */
    public function load(): array
    {
        $there = array_filter($this->files, is_file(...));

        return $there !== []
            ? array_map(ResultsFile::load(...), $there)
            : throw new BenchmarkException('there are no results in ' . dirname($this->files['bus']) . ': run `make bench`');
    }
}
