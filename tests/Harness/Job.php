<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** One process that runs tests: a few PHP test files, a Rust test program, a conformance suite. */
abstract class Job
{
    /**
     * @param string $name     as progress lines show it
     * @param float  $expected seconds; the queue starts the longest first
     * @param float  $deadline seconds after which the job is ended and counts as a failure
     */
    public function __construct(
        public readonly string $name,
        public readonly float $expected,
        public readonly float $deadline = 300.0,
    ) {
    }

    /**
     * @param string $directory of this run of the job, for its reports
     *
     * @return list<string>
     */
    abstract public function command(string $directory): array;

    /** Reads what the ended process left in its directory and in `$directory/output`. */
    abstract public function result(string $directory, int $code): Result;

    public function workingDirectory(): ?string
    {
        return null;
    }
}
