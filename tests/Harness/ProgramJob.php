<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** A program whose exit code is the test. */
final class ProgramJob extends Job
{
    /** @param list<string> $command */
    public function __construct(string $name, private readonly array $command, float $deadline = 60.0)
    {
        // First in the queue.
        parent::__construct($name, \INF, $deadline);
    }

    public function command(string $directory): array
    {
        return $this->command;
    }

    public function result(string $directory, int $code): Result
    {
        $result = new Result($code === 0 ? 1 : 0);
        $code === 0 || $result->fail("{$this->name}: exit code $code", Output::tail("$directory/output"));

        return $result;
    }
}
