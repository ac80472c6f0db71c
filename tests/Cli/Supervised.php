<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

/** A `weft run` that goes on while a test looks at its log. */
final class Supervised
{
    /** Seconds. It only ends a hang. */
    private const DEADLINE = 60.0;

    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];
    private string $unread = '';
    /** @var list<array<string, mixed>> every log line so far */
    public array $log = [];
    /** What it and its workers have written that is no log line. */
    public string $other = '';
    private int $seen = 0;
    private ?int $exitCode = null;

    /**
     * @param list<string> $options of `weft run`
     * @param array<string, string> $environment in addition
     * @param list<string> $through a command that gets the command line as its last arguments and executes it
     */
    public function __construct(string $application, array $options = [], array $environment = [], array $through = [])
    {
        $this->process = \proc_open(
            [...$through, ...Weft::command(['run', '--log=json', ...$options, $application])],
            [0 => ['file', '/dev/null', 'r'], 1 => ['file', '/dev/null', 'w'], 2 => ['pipe', 'w']],
            $this->pipes,
            null,
            $environment + \getenv(),
        );
        \stream_set_blocking($this->pipes[2], false);
    }

    public function __destruct()
    {
        if ($this->exitCode === null) {
            $this->signal(\SIGQUIT);
            try {
                $this->end();
            } catch (\RuntimeException) {
                $this->signal(\SIGKILL);
            }
        }
    }

    public function pid(): int
    {
        return \proc_get_status($this->process)['pid'];
    }

    public function signal(int $signal): void
    {
        \posix_kill($this->pid(), $signal);
    }

    /**
     * The next log line whose message contains `$text`, after the one that was found before.
     *
     * @return array<string, mixed>
     */
    public function wait(string $text): array
    {
        return $this->next($text, static fn(string $message): bool => \str_contains($message, $text));
    }

    /**
     * The next log line whose message matches the regular expression, after the one that was found before.
     *
     * @return array<string, mixed>
     */
    public function waitForMatch(string $expression): array
    {
        return $this->next($expression, static fn(string $message): bool => \preg_match($expression, $message) === 1);
    }

    /** Waits until it or a worker has written `$text` outside of the log. */
    public function waitForOutput(string $text): void
    {
        $deadline = \hrtime(true) / 1e9 + self::DEADLINE;
        while (!\str_contains($this->other, $text)) {
            if (\hrtime(true) / 1e9 > $deadline || !$this->read()) {
                throw new \RuntimeException("Nothing has written \"$text\":\n" . $this->messages() . $this->other);
            }
        }
    }

    /** Takes what it has written meanwhile. */
    public function look(): void
    {
        if (!$this->read()) {
            throw new \RuntimeException("It has ended:\n" . $this->messages() . $this->other);
        }
    }

    /** Waits until it has ended and returns the exit code. */
    public function end(): int
    {
        $deadline = \hrtime(true) / 1e9 + self::DEADLINE;
        while ($this->read()) {
            if (\hrtime(true) / 1e9 > $deadline) {
                throw new \RuntimeException("It does not end:\n" . $this->messages());
            }
        }
        $this->exitCode ??= self::status($this->process);

        return $this->exitCode;
    }

    /** @return list<string> */
    public function all(string $text): array
    {
        return \array_values(\array_filter(\array_column($this->log, 'message'), static fn(string $message): bool => \str_contains($message, $text)));
    }

    public function messages(): string
    {
        return \implode("\n", \array_map(static fn(array $line): string => "$line[time] $line[level] $line[message]", $this->log)) . "\n";
    }

    /**
     * @param callable(string): bool $isIt
     *
     * @return array<string, mixed>
     */
    private function next(string $wanted, callable $isIt): array
    {
        $deadline = \hrtime(true) / 1e9 + self::DEADLINE;
        while (true) {
            while ($this->seen < \count($this->log)) {
                $line = $this->log[$this->seen++];
                if ($isIt($line['message'])) {
                    return $line;
                }
            }
            if (\hrtime(true) / 1e9 > $deadline || !$this->read()) {
                throw new \RuntimeException("There was no \"$wanted\" in the log:\n" . $this->messages() . $this->other);
            }
        }
    }

    /** Waits for more of the log. False at its end. */
    private function read(): bool
    {
        $ready = [$this->pipes[2]];
        $none = [];
        \stream_select($ready, $none, $none, 0, 200_000);
        $chunk = (string) \fread($this->pipes[2], 65536);
        $lines = \explode("\n", $this->unread . $chunk);
        $this->unread = (string) \array_pop($lines);
        foreach ($lines as $line) {
            $fields = \json_decode($line, true);
            if (\is_array($fields)) {
                $this->log[] = $fields;
            } else {
                $this->other .= "$line\n";
            }
        }

        return $chunk !== '' || !\feof($this->pipes[2]);
    }

    /** @param resource $process */
    private static function status($process): int
    {
        $deadline = \hrtime(true) / 1e9 + self::DEADLINE;
        while (($status = \proc_get_status($process))['running']) {
            if (\hrtime(true) / 1e9 > $deadline) {
                throw new \RuntimeException('It has closed its output and hangs');
            }
            \usleep(2000);
        }

        return $status['exitcode'];
    }
}
