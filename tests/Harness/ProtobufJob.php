<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** The conformance suite of google/protobuf. */
final class ProtobufJob extends Job
{
    public function __construct(private readonly string $root, float $expected)
    {
        parent::__construct('scripts/protobuf-conformance', $expected, 600.0);
    }

    public function command(string $directory): array
    {
        return ["{$this->root}/scripts/protobuf-conformance"];
    }

    /** The text format, which Weft does not have, is a suite of its own: its skipped tests are not counted. */
    public function result(string $directory, int $code): Result
    {
        $output = (string) \file_get_contents("$directory/output");
        $result = new Result();
        \preg_match_all('/^CONFORMANCE SUITE (?:PASSED|FAILED): ([1-9]\d*) successes, (\d+) skipped,.* (\d+) unexpected failures/m', $output, $suites, \PREG_SET_ORDER);
        foreach ($suites as [, $passed, $skipped, $failed]) {
            $result->passed += (int) $passed;
            $result->failed += (int) $failed;
            $result->skipped += (int) $skipped;
        }
        \preg_match_all('/^ERROR, test=([^:]{1,200})(.{0,300})/m', $output, $errors, \PREG_SET_ORDER);
        foreach ($errors as [, $name, $message]) {
            $result->failures["protobuf conformance: $name"] = $message;
        }
        if ($result->passed === 0 || $code !== 0 && $result->failed === 0) {
            $result->fail("{$this->name} ended with exit code $code and {$result->passed} passed tests", Output::tail("$directory/output"));
        }

        return $result;
    }
}
