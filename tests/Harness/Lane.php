<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/**
 * Runs one job after the other. A lane may have servers of its own, so its jobs may stop, kill and reconfigure them
 * without disturbing those of other lanes.
 */
final class Lane
{
    /** Seconds in which what a job has started may end by itself: on a busy machine a process that was killed needs some. */
    private const LAST_SECONDS = 15.0;

    private ?Process $starting = null;
    private ?Process $process = null;
    private ?Job $job = null;
    private string $directory = '';
    private string $temporary = '';
    private ?Servers $servers = null;

    /**
     * @param string $reports   where each job's directory goes
     * @param string $scratch   of the run: what jobs write to the temporary directory goes below it
     * @param string|null $var  of the servers; null for a lane without
     */
    public function __construct(
        private readonly string $root,
        public readonly int $number,
        private readonly string $reports,
        private readonly string $scratch,
        private readonly ?string $var,
    ) {
        if ($var !== null) {
            $this->starting = new Process(["$root/scripts/services", 'up'], "$reports/services-$number", ['WEFT_VAR' => $var, 'WEFT_FIRST_PORT' => (string) (20_000 + $number % 12 * 1_000)]);
            $this->servers = new Servers("$var/services/env");
        }
    }

    public function isIdle(): bool
    {
        return $this->process === null && $this->starting === null;
    }

    public function runs(): ?string
    {
        return $this->job?->name;
    }

    public function start(Job $job): void
    {
        $this->job = $job;
        $this->directory = "{$this->reports}/" . \trim((string) \preg_replace('/[^\w.]+/', '-', $job->name), '-');
        $this->temporary = "{$this->scratch}/" . \bin2hex(\random_bytes(3));
        @\mkdir($this->directory);
        \mkdir($this->temporary, 0o755);
        $environment = ['TMPDIR' => $this->temporary, 'WEFT_TEST_DIRECTORY' => $this->directory] + $this->serverEnvironment();
        $this->process = new Process($job->command($this->directory), "{$this->directory}/output", $environment, $job->workingDirectory());
    }

    /** @return Finished|null when a job has ended */
    public function poll(): ?Finished
    {
        $this->awaitServers();
        if ($this->job === null || $this->process === null) {
            return null;
        }
        $code = $this->process->code();
        $late = $code === null && $this->process->seconds() > $this->job->deadline;
        if ($code === null && !$late) {
            return null;
        }
        $result = $late ? $this->hung($this->job, $this->process) : $this->job->result($this->directory, (int) $code);
        $this->collectIncidents($this->job, $result);
        $this->collectLeftovers($this->job, $this->process, $result, $late || $code > 128);
        $finished = new Finished($this->job, $result, $this->process->seconds(), $this->directory);
        $this->job = $this->process = null;

        return $finished;
    }

    /** Ends the job that runs, if one does, and the start of the servers: {@see stop()} would wait for it. */
    public function interrupt(): void
    {
        $this->process?->end();
        $this->starting?->end();
        $this->process = $this->job = $this->starting = null;
    }

    /** Begins to stop the servers. */
    public function stop(): ?Process
    {
        return $this->var === null ? null : new Process(["{$this->root}/scripts/services", 'down'], "{$this->reports}/services-down-{$this->number}", ['WEFT_VAR' => $this->var]);
    }

    private function awaitServers(): void
    {
        $code = $this->starting?->code();
        if ($code !== null) {
            $this->starting = null;
            $code === 0 || throw new \RuntimeException("the servers of lane {$this->number} do not start:\n" . Output::tail("{$this->reports}/services-{$this->number}"));
        }
    }

    /** @return array<string, string> */
    private function serverEnvironment(): array
    {
        return $this->servers === null ? [] : ['WEFT_TEST_SERVERS' => "{$this->var}/services/env"] + $this->servers->environment();
    }

    private function hung(Job $job, Process $process): Result
    {
        $process->end();
        $result = new Result();
        $last = (string) @\file_get_contents("{$this->directory}/progress");
        $result->fail(\sprintf('%s: ended after its deadline of %.0f s%s', $job->name, $job->deadline, $last === '' ? '' : ", in $last"), Output::tail("{$this->directory}/output"));

        return $result;
    }

    private function collectIncidents(Job $job, Result $result): void
    {
        foreach (\array_filter(\explode("\n", (string) @\file_get_contents("{$this->directory}/incidents"))) as $incident) {
            $result->fail("{$job->name}: $incident");
        }
        $down = $this->servers?->down() ?? [];
        if ($down !== []) {
            $result->fail("{$job->name}: " . \implode(' and ', $down) . ' was down after its last test');
            $this->servers?->start();
        }
    }

    private function collectLeftovers(Job $job, Process $process, Result $result, bool $wasKilled): void
    {
        $deadline = \hrtime(true) / 1e9 + self::LAST_SECONDS;
        while (($left = $process->leftovers()) !== [] && \hrtime(true) / 1e9 < $deadline) {
            \usleep(20_000);
        }
        if ($left !== []) {
            $process->end();
            $result->fail("{$job->name}: left processes running", \implode("\n", $left));
        }
        $files = \array_diff(\scandir($this->temporary) ?: [], ['.', '..']);
        // A job that was killed had no time to remove its files; since version 12 PHPUnit has one for each test.
        if ($files !== [] && !$wasKilled) {
            $result->fail("{$job->name}: left files in the temporary directory", \implode("\n", $files));
        }
        self::remove($this->temporary);
    }

    public static function remove(string $directory): void
    {
        \exec('rm -rf -- ' . \escapeshellarg($directory));
    }
}
