<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A benchmark's results as JSON: `machine`, `versions`, `runs` and what else that benchmark has. */
final class ResultsFile
{
    /**
     * @return array<string, mixed>
     *
     * @throws BenchmarkException when the file is not there or not a results file
     */
    public static function load(string $path): array
    {
        $fields = json_decode((string) @file_get_contents($path), true);

        return isset($fields['machine'], $fields['versions'], $fields['runs'])
            ? $fields
            : throw new BenchmarkException("$path is not a results file");
    }

    /** @param array<string, mixed> $fields */
    public static function save(string $path, array $fields): void
    {
        $flags = JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;
        @mkdir(dirname($path), recursive: true);
        if (@file_put_contents($path, json_encode($fields, $flags) . "\n") === false) {
            throw new BenchmarkException("cannot write $path");
        }
    }
}
