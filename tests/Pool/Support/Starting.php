<?php

declare(strict_types=1);

namespace Weft\Tests\Pool\Support;

use function Weft\delay;

/** A command that runs beside the tasks. */
final class Starting
{
    /** @var resource */
    private $process;
    private string $log;

    /** @param \Closure(): void $started called when the command has succeeded */
    public function __construct(string $command, private readonly \Closure $started)
    {
        $this->log = (string) \tempnam(\sys_get_temp_dir(), 'weft-start');
        $process = \proc_open("exec $command", [['file', '/dev/null', 'r'], ['file', $this->log, 'w'], ['file', $this->log, 'a']], $pipes);
        \assert(\is_resource($process));
        $this->process = $process;
    }

    /** @throws \RuntimeException with what it printed, when it fails */
    public function await(): void
    {
        while (($status = \proc_get_status($this->process))['running']) {
            delay(0.02);
        }
        $log = (string) \file_get_contents($this->log);
        \unlink($this->log);
        $status['exitcode'] === 0 || throw new \RuntimeException("starting ended with {$status['exitcode']}: $log");
        ($this->started)();
    }
}
