<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Runs one program to its end and measures it. Only one may run at a time: its CPU time is that of this process's children meanwhile. */
final class Program
{
    private const SAMPLE_SECONDS = 0.02;
    private const GRACE_SECONDS = 5.0;

    /** @var resource */
    private $process;
    /** @var resource */
    private $stdout;
    private int $pid;
    /** The exit code of a process that had ended before its status was read: proc_close() does not return it. */
    private ?int $code = null;
    private string $output = '';
    private float $peakMemory = 0.0;

    /**
     * @param list<string> $command
     * @param array<string, string> $environment added to this process's own
     */
    private function __construct(array $command, array $environment, private readonly string $log)
    {
        $streams = [['file', '/dev/null', 'r'], ['pipe', 'w'], ['file', $log, 'w']];
        $process = @proc_open($command, $streams, $pipes, null, $environment + getenv());
        if ($process === false) {
            Interrupted::resume();
            throw new BenchmarkException("cannot start {$command[0]}");
        }
        $this->process = $process;
        $this->stdout = $pipes[1];
        $status = proc_get_status($process);
        $this->pid = $status['pid'];
        $this->code = $status['running'] ? null : $status['exitcode'];
        stream_set_blocking($this->stdout, false);
    }

    /**
     * @param list<string> $command
     * @param array<string, string> $environment added to this process's own
     * @param string $log file that receives the program's error stream
     * @param float $timeout seconds after which the program is ended
     * @param \Closure(float): void $tick called about every 20 ms with the seconds since the start
     *
     * @throws TimedOut when it exceeds the time
     * @throws BenchmarkException when it cannot start or exits with another code than 0
     */
    public static function run(array $command, array $environment, string $log, float $timeout, \Closure $tick): Usage
    {
        $cpu = self::childrenCpuSeconds();
        $started = microtime(true);
        Interrupted::postpone();
        $program = new self($command, $environment, $log);
        try {
            Interrupted::resume();
            $program->awaitEnd($started, $timeout, $tick);
        } catch (Interrupted $interrupted) {
            $program->end();
            throw $interrupted;
        }
        $seconds = microtime(true) - $started;
        $program->requireSuccess();

        return new Usage($seconds, self::childrenCpuSeconds() - $cpu, $program->peakMemory, $program->output);
    }

    private function awaitEnd(float $started, float $timeout, \Closure $tick): void
    {
        while (!feof($this->stdout)) {
            $this->read();
            $this->samplePeakMemory();
            $elapsed = microtime(true) - $started;
            if ($elapsed > $timeout) {
                $this->end();
                throw new TimedOut(sprintf('did not end within %d s, log: %s', $timeout, $this->log));
            }
            $tick($elapsed);
        }
    }

    private function read(): void
    {
        $read = [$this->stdout];
        $write = $except = null;
        if (@stream_select($read, $write, $except, 0, (int) (self::SAMPLE_SECONDS * 1e6)) > 0) {
            $this->output .= stream_get_contents($this->stdout);
        }
    }

    /** The kernel's own peak since exec. ru_maxrss would start at the size of this process, which the child was forked from. */
    private function samplePeakMemory(): void
    {
        if (preg_match('/^VmHWM:\s+(\d+) kB/m', (string) @file_get_contents("/proc/{$this->pid}/status"), $match)) {
            $this->peakMemory = max($this->peakMemory, $match[1] / 1024);
        }
    }

    private function requireSuccess(): void
    {
        fclose($this->stdout);
        $closed = proc_close($this->process);
        $code = $this->code ?? $closed;
        if ($code !== 0) {
            throw new BenchmarkException("exited with code $code, log: {$this->log}");
        }
    }

    private function end(): void
    {
        proc_terminate($this->process);
        $deadline = microtime(true) + self::GRACE_SECONDS;
        while (proc_get_status($this->process)['running'] && microtime(true) < $deadline) {
            usleep(20_000);
        }
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }

    private static function childrenCpuSeconds(): float
    {
        $usage = getrusage(1);

        return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']
            + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
    }
}
