<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use Weft\Tests\Timing;

/** A command of a page that runs in the background, in a process group of its own. */
final class BackgroundServer
{
    /** @param resource $process */
    private function __construct(private $process, public readonly string $command, private readonly string $log)
    {
    }

    /**
     * @param array<string, string> $environment
     * @param string $log receives what it prints
     */
    public static function start(string $command, string $directory, array $environment, string $log): self
    {
        $streams = [['file', '/dev/null', 'r'], ['file', $log, 'w'], ['file', $log, 'a']];
        // `env` for commands such as `DATABASE_URL=… php app.php`.
        $process = \proc_open(['setsid', 'bash', '-eu', '-c', "exec env $command"], $streams, $pipes, $directory, $environment);

        return new self($process ?: throw new \RuntimeException("Cannot start $command"), $command, $log);
    }

    public function output(): string
    {
        return (string) \file_get_contents($this->log);
    }

    public function isRunning(): bool
    {
        return \proc_get_status($this->process)['running'];
    }

    /** Ends it if it still runs. */
    public function kill(): void
    {
        \is_resource($this->process) && $this->stop(\SIGKILL);
    }

    /** @return int the exit code; -1 if it did not end */
    public function stop(int $signal): int
    {
        $status = \proc_get_status($this->process);
        $deadline = \hrtime(true) / 1e9 + Timing::DEADLINE;
        $status['running'] && \posix_kill($status['pid'], $signal);
        while ($status['running'] && \hrtime(true) / 1e9 < $deadline) {
            \usleep(5_000);
            $status = \proc_get_status($this->process);
        }
        // Whatever is left of its group.
        @\posix_kill(-$status['pid'], \SIGKILL);
        \proc_close($this->process);

        return $status['running'] ? -1 : $status['exitcode'];
    }
}
