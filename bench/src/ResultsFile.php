<?php

declare(strict_types=1);

namespace Weft\Bench;

/** The results of a benchmark as JSON: `date`, `command`, `machine`, `versions`, `runs` and fields of that benchmark. */
final class ResultsFile
{
    private const FLAGS = JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;

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

    /**
     * Adds the date and the command line of this process. Paths are written relative to the repository, so that a published file
     * says nothing of the machine but what `machine` does.
     *
     * @param array<string, mixed> $fields
     */
    public static function save(string $path, array $fields): void
    {
        $origin = ['date' => gmdate('Y-m-d\TH:i:s\Z'), 'command' => implode(' ', $_SERVER['argv'] ?? [])];
        $json = str_replace(dirname(__DIR__, 2) . '/', '', json_encode($origin + $fields, self::FLAGS));
        @mkdir(dirname($path), recursive: true);
        if (@file_put_contents($path, self::withNumbersOnOneLine($json) . "\n") === false) {
            throw new BenchmarkException("cannot write $path");
        }
    }

    /** Series of hundreds of samples would otherwise take as many lines. */
    private static function withNumbersOnOneLine(string $json): string
    {
        $number = '-?\d[\d.eE+-]*';

        return (string) preg_replace_callback(
            "/\\[\\s+($number(?:,\\s+$number)*)\\s+\\]/",
            static fn (array $match): string => '[' . preg_replace('/\s+/', ' ', $match[1]) . ']',
            $json,
        );
    }
}
