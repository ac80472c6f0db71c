<?php

declare(strict_types=1);

namespace Weft\Bench;

/** A server that runs in a session of its own, together with what it starts, until it is stopped. */
final class Server
{
    private const LOG_LINES = 15;
    private const IDLE_MICROSECONDS = 100_000;
    /** The processor time in which the system counts. */
    private const IDLE_CPU_SECONDS = 0.015;

    public readonly ProcessTree $tree;

    /**
     * @param resource $process
     * @param string $log file that receives output and errors
     */
    private function __construct(private $process, public readonly int $pid, public readonly string $log)
    {
        $this->tree = new ProcessTree($pid);
    }

    /**
     * @param list<string> $command
     * @param array<string, string> $environment added to this process's own
     * @param string $log file that receives output and errors
     * @param int $port it is up when it accepts connections there
     * @param float $timeout seconds it may take to do so
     *
     * @throws TimedOut when it does not accept in time; with the end of its log
     * @throws BenchmarkException when it ends before; with the same
     */
    public static function start(array $command, array $environment, string $log, int $port, float $timeout = 20.0): self
    {
        $streams = [['file', '/dev/null', 'r'], ['file', $log, 'w'], ['file', $log, 'a']];
        Interrupted::postpone();
        $process = @proc_open(['setsid', ...$command], $streams, $pipes, null, $environment + getenv());
        if ($process === false) {
            Interrupted::resume();
            throw new BenchmarkException("cannot start {$command[0]}");
        }
        $server = new self($process, proc_get_status($process)['pid'], $log);
        try {
            Interrupted::resume();
            $server->awaitPort($port, $timeout);
        } catch (BenchmarkException | Interrupted $failure) {
            $server->stop();
            throw $failure;
        }

        return $server;
    }

    public function isRunning(): bool
    {
        return proc_get_status($this->process)['running'];
    }

    /**
     * Ends it, and then its remaining child processes.
     *
     * @param float $graceSeconds between SIGTERM and SIGKILL, for each of the two
     */
    public function stop(float $graceSeconds = 10.0): void
    {
        if (!is_resource($this->process)) {
            return;
        }
        $leader = fn (): array => $this->isRunning() ? [$this->pid] : [];
        self::end($leader, $graceSeconds);
        self::end($this->tree->pids(...), $graceSeconds);
        proc_close($this->process);
    }

    /**
     * Waits until it is done with what a load has left behind, so that nothing of it falls into what is measured next: PHP-FPM handles all requests
     * that wait for a worker, also those whose clients have gone.
     *
     * @param float $timeout seconds
     *
     * @return bool false when it was still busy after `$timeout`
     */
    public function awaitIdle(float $timeout = 30.0): bool
    {
        $deadline = microtime(true) + $timeout;
        $used = $this->tree->cpuSeconds();
        while (true) {
            usleep(self::IDLE_MICROSECONDS);
            $before = $used;
            $used = $this->tree->cpuSeconds();
            // On a busy machine it may get no core in all that time.
            if ($used - $before < self::IDLE_CPU_SECONDS && !$this->tree->wantsCore()) {
                return true;
            }
            if (microtime(true) > $deadline) {
                return false;
            }
        }
    }

    /** The last lines it printed, for an error message. */
    public function logTail(): string
    {
        return implode("\n", array_slice(explode("\n", trim((string) @file_get_contents($this->log))), -self::LOG_LINES));
    }

    private function awaitPort(int $port, float $timeout): void
    {
        $deadline = microtime(true) + $timeout;
        while (!Port::accepts($port)) {
            if (!$this->isRunning()) {
                throw new BenchmarkException("ended before it accepted connections, log {$this->log}: {$this->logTail()}");
            }
            if (microtime(true) > $deadline) {
                throw new TimedOut("accepts no connections on port $port after $timeout s, log {$this->log}: {$this->logTail()}");
            }
            usleep(20_000);
        }
    }

    /** @param \Closure(): list<int> $pids those that still live */
    private static function end(\Closure $pids, float $graceSeconds): void
    {
        foreach ([SIGTERM, SIGKILL] as $signal) {
            array_map(static fn (int $pid): bool => posix_kill($pid, $signal), $pids());
            $deadline = microtime(true) + $graceSeconds;
            while ($pids() !== [] && microtime(true) < $deadline) {
                usleep(10_000);
            }
        }
    }
}
