<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Program;

/** Waiting tasks and the memory of their process. */
final class TaskPoints
{
    private const TIMEOUT_SECONDS = 120.0;

    /** @param string $program bench/scale/tasks.php */
    public function __construct(private readonly string $program, private readonly string $extension)
    {
    }

    public function of(int $tasks): Point
    {
        return new Point(Curve::Tasks, 'resident', $tasks, fn (string $log): array => $this->memory($tasks, $log));
    }

    /** @return array<string, float> MiB */
    private function memory(int $tasks, string $log): array
    {
        $command = [PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', "extension={$this->extension}", '-d', 'memory_limit=-1', $this->program, (string) $tasks];
        $output = Program::run($command, [], $log, self::TIMEOUT_SECONDS, static fn (): null => null)->output;
        $report = json_decode(trim($output), true) ?? throw new BenchmarkException("printed no report: $output, log: $log");

        return ['' => $report['resident_mib'], 'asked of PHP’s allocator' => $report['php_mib']];
    }
}
