<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** The counts of one job, and one line for each test that failed or was skipped. */
final class Result
{
    /**
     * @param array<string, string> $failures the message of each failed test by its name
     * @param list<array{string, string}> $skips    test and reason
     * @param array<string, float>  $times    seconds by file or program, for the order of the next run
     */
    public function __construct(
        public int $passed = 0,
        public int $failed = 0,
        public int $skipped = 0,
        public array $failures = [],
        public array $skips = [],
        public array $times = [],
    ) {
    }

    /** Counts a failure that is no test's own: a crash, a hang, a process or a file that a job left behind. */
    public function fail(string $name, string $message = ''): void
    {
        $this->failed++;
        $this->failures[$name] = $message;
    }

    public function add(self $other): void
    {
        $this->passed += $other->passed;
        $this->failed += $other->failed;
        $this->skipped += $other->skipped;
        foreach ($other->failures as $name => $message) {
            $this->failures[isset($this->failures[$name]) ? "$name (again)" : $name] = $message;
        }
        \array_push($this->skips, ...$other->skips);
        foreach ($other->times as $name => $seconds) {
            $this->times[$name] = ($this->times[$name] ?? 0.0) + $seconds;
        }
    }

    public function summary(): string
    {
        return "{$this->passed} passed, {$this->failed} failed, {$this->skipped} skipped";
    }
}
