<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use PHPUnit\Framework\Attributes\After;
use Weft\Tests\Extension;

/** Processes that consume and are killed while they do. */
trait Killable
{
    /** @var list<resource> */
    private array $processes = [];

    /** @after */
    #[After]
    protected function killAll(): void
    {
        foreach ($this->processes as $process) {
            \proc_terminate($process, 9);
            \proc_close($process);
        }
    }

    /** @return int its process id */
    private function start(string $script, string ...$more): int
    {
        return $this->launch(\STDERR, $script, $this->brokerDsn(), $this->databaseDsn(), ...$more);
    }

    /** @return int its process id */
    private function startWriting(string $file, string $script, string ...$arguments): int
    {
        return $this->launch(['file', $file, 'w'], $script, ...$arguments);
    }

    /** @param resource|array{string, string, string} $output */
    private function launch(mixed $output, string $script, string ...$arguments): int
    {
        $command = [\PHP_BINARY, '-d', 'extension=' . Extension::library(), __DIR__ . "/{$script}", ...$arguments];
        $process = \proc_open($command, [1 => $output, 2 => \STDERR], $pipes);
        self::assertIsResource($process);
        $this->processes[] = $process;

        return \proc_get_status($process)['pid'];
    }

    private function kill(int $pid): void
    {
        foreach ($this->processes as $index => $process) {
            if (\proc_get_status($process)['pid'] === $pid) {
                \proc_terminate($process, 9);
                \proc_close($process);
                unset($this->processes[$index]);

                return;
            }
        }
        self::fail("{$pid} is none of the processes that consume");
    }
}
