<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/**
 * A program in a session of its own, its output in a file. Every process that descends from it carries a mark in its
 * environment, by which {@see leftovers()} finds those that outlive it.
 */
final class Process
{
    private const MARK = 'WEFT_TEST_JOB';

    public readonly float $started;
    public readonly int $pid;
    private readonly string $mark;
    /** @var resource */
    private $handle;
    private ?int $code = null;

    /**
     * @param list<string>          $command
     * @param array<string, string> $environment beside that of this process
     */
    public function __construct(array $command, string $output, array $environment = [], ?string $workingDirectory = null)
    {
        $this->mark = \bin2hex(\random_bytes(8));
        // From version 22 on, programs of Node leave a cache in the temporary directory.
        $environment = [self::MARK => $this->mark, 'NODE_DISABLE_COMPILE_CACHE' => '1'] + $environment + \getenv();
        $files = [['file', '/dev/null', 'r'], ['file', $output, 'w'], ['redirect', 1]];
        $handle = \proc_open(['setsid', ...$command], $files, $pipes, $workingDirectory, $environment);
        $this->handle = $handle ?: throw new \RuntimeException("cannot start {$command[0]}");
        $status = \proc_get_status($this->handle);
        $this->pid = $status['pid'];
        $this->note($status);
        $this->started = \hrtime(true) / 1e9;
    }

    /** The exit code, 128 and the signal's number where a signal ended it, or null while it runs. */
    public function code(): ?int
    {
        $this->code !== null || $this->note(\proc_get_status($this->handle));

        return $this->code;
    }

    /**
     * PHP tells the exit code once only, so every status must come by here.
     *
     * @param array{running: bool, signaled: bool, termsig: int, exitcode: int} $status
     */
    private function note(array $status): void
    {
        if (!$status['running']) {
            $this->code = $status['signaled'] ? 128 + $status['termsig'] : $status['exitcode'];
        }
    }

    public function seconds(): float
    {
        return \hrtime(true) / 1e9 - $this->started;
    }

    /** Ends the program and its descendants: asks, and after ten seconds kills. */
    public function end(): void
    {
        foreach ([[\SIGTERM, 10.0], [\SIGKILL, 5.0]] as [$signal, $seconds]) {
            $deadline = \hrtime(true) / 1e9 + $seconds;
            @\posix_kill(-$this->pid, $signal);
            foreach (\array_keys($this->leftovers()) as $pid) {
                @\posix_kill($pid, $signal);
            }
            while (\hrtime(true) / 1e9 < $deadline) {
                if ($this->code() !== null && $this->leftovers() === []) {
                    return;
                }
                \usleep(20_000);
            }
        }
    }

    /** @return array<int, string> the command lines of processes that descend from the program, by their ids */
    public function leftovers(): array
    {
        $found = [];
        foreach (\glob('/proc/[0-9]*', \GLOB_ONLYDIR | \GLOB_NOSORT) ?: [] as $directory) {
            $environment = @\file_get_contents("$directory/environ");
            if ($environment !== false && \str_contains("\0$environment", "\0" . self::MARK . "={$this->mark}\0")) {
                $command = \strtr((string) @\file_get_contents("$directory/cmdline"), "\0", ' ');
                $found[(int) \basename($directory)] = \trim($command);
            }
        }
        unset($found[$this->code === null ? $this->pid : 0]);

        return $found;
    }
}
