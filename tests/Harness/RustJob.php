<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** One test program that Cargo has built, or the tests in documentation. */
final class RustJob extends Job
{
    /** @param list<string> $command */
    public function __construct(string $name, private readonly string $directory, private readonly array $command, float $expected)
    {
        parent::__construct($name, $expected, \max(600.0, 6 * $expected));
    }

    public function command(string $directory): array
    {
        return $this->command;
    }

    public function workingDirectory(): string
    {
        return $this->directory;
    }

    public function result(string $directory, int $code): Result
    {
        $output = (string) \file_get_contents("$directory/output");
        $result = new Result();
        \preg_match_all('/^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;/m', $output, $counts, \PREG_SET_ORDER);
        foreach ($counts as [, $passed, $failed, $ignored]) {
            $result->passed += (int) $passed;
            $result->failed += (int) $failed;
            $result->skipped += (int) $ignored;
        }
        \preg_match_all('/^test (.*) \.\.\. FAILED$/m', $output, $names);
        foreach ($names[1] as $name) {
            $result->failures["{$this->name}: $name"] = self::message($output, $name);
        }
        \preg_match_all('/^test (.*) \.\.\. ignored(?:, (.*))?$/m', $output, $ignored, \PREG_SET_ORDER);
        foreach ($ignored as $one) {
            $result->skips[] = ["{$this->name}: {$one[1]}", $one[2] ?? 'ignored'];
        }
        if ($counts === [] || $code !== 0 && $result->failed === 0) {
            $result->fail("{$this->name}: the program ended with exit code $code and " . \count($counts) . ' results', Output::tail("$directory/output"));
        }

        return $result;
    }

    private static function message(string $output, string $name): string
    {
        \preg_match('/^---- ' . \preg_quote($name, '/') . ' stdout ----\n(.*?)(?=^---- |^failures:)/ms', $output, $said);

        return \trim($said[1] ?? '');
    }
}
