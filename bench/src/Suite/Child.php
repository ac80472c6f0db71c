<?php

declare(strict_types=1);

namespace Weft\Bench\Suite;

use Weft\Bench\BenchmarkException;
use Weft\Bench\ProcessTree;

/**
 * A benchmark that runs as a process of its own, whose words are passed on and kept. It leads a session, so that Ctrl-C at the
 * terminal reaches it once, through this process.
 */
final class Child
{
    /** It may take so long to stop its contenders. */
    private const GRACE_SECONDS = 30.0;

    /** @var resource */
    private $process;
    /** @var resource */
    private $output;
    /** @var resource */
    private $log;
    private readonly int $pid;
    /** The status tells it once: proc_close() does not know it any more. */
    private ?int $code = null;

    /**
     * @param list<string> $command
     * @param array<string, string> $environment added to this process's own
     * @param string $log file that receives all it prints
     */
    public function __construct(array $command, array $environment, string $log)
    {
        $this->log = fopen($log, 'w') ?: throw new BenchmarkException("cannot write $log");
        $streams = [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]];
        $this->process = @proc_open(['setsid', ...$command], $streams, $pipes, null, $environment + getenv())
            ?: throw new BenchmarkException("cannot start {$command[0]}");
        $this->output = $pipes[1];
        $this->pid = $this->status()['pid'];
        stream_set_blocking($this->output, false);
    }

    /**
     * Waits for its end.
     *
     * @param \Closure(string): void $said receives its output, and an empty string at least once a second
     *
     * @return int exit code
     */
    public function await(\Closure $said): int
    {
        while (!feof($this->output)) {
            $read = [$this->output];
            $write = $except = null;
            @stream_select($read, $write, $except, 1);
            $text = (string) stream_get_contents($this->output);
            fwrite($this->log, $text);
            $said($text);
        }

        return $this->close();
    }

    /**
     * Ends the program and its child processes: first gracefully, then by force.
     */
    public function end(): void
    {
        posix_kill(-$this->pid, SIGTERM);
        $deadline = microtime(true) + self::GRACE_SECONDS;
        while ($this->status()['running'] && microtime(true) < $deadline) {
            fwrite($this->log, (string) stream_get_contents($this->output));
            usleep(20_000);
        }
        $left = (new ProcessTree($this->pid))->pids();
        array_map(static fn (int $pid): bool => posix_kill($pid, SIGKILL), $left);
        $this->close();
    }

    private function close(): int
    {
        fclose($this->output);
        fclose($this->log);

        $code = proc_close($this->process);

        return $this->code ?? $code;
    }

    /** @return array<string, mixed> see {@see proc_get_status()} */
    private function status(): array
    {
        $status = proc_get_status($this->process);
        if (!$status['running'] && $this->code === null) {
            $this->code = $status['exitcode'];
        }

        return $status;
    }
}
