<?php

declare(strict_types=1);

namespace Weft\Tests;

/** A command that has run to its end. What goes on while a test looks at it is a {@see Program}. */
final class Execution
{
    /** Seconds without output, after which it is killed. It only ends a hang. */
    private const DEADLINE = Timing::DEADLINE;

    private function __construct(
        public readonly int $exitCode,
        public readonly ?int $signal,
        public readonly string $output,
        public readonly string $errors,
        public readonly float $seconds,
    ) {
    }

    /**
     * @param list<string> $command
     * @param array<string, string> $environment in addition
     * @param array{string, int}|null $kill a text of its output to wait for and the signal to send then
     */
    public static function of(array $command, array $environment = [], ?string $directory = null, ?array $kill = null): self
    {
        $from = hrtime(true);
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes, $directory, $environment + getenv());
        $process !== false || throw new \RuntimeException("{$command[0]} does not start");
        unset($pipes[0]);
        [$output, $errors] = self::drain($process, $pipes, $kill);
        $status = self::end($process);

        return new self($status['exitcode'], $status['signaled'] ? $status['termsig'] : null, $output, $errors, (hrtime(true) - $from) / 1e9);
    }

    /**
     * Both at the same time: a program that fills one pipe waits until it is read. Without stream_select(), which takes no descriptors above 1,024:
     * tests open thousands.
     *
     * @param resource $process
     * @param array<int, resource> $pipes
     * @param array{string, int}|null $kill
     *
     * @return array{string, string}
     */
    private static function drain($process, array $pipes, ?array $kill): array
    {
        $text = [1 => '', 2 => ''];
        array_map(static fn($pipe): bool => stream_set_blocking($pipe, false), $pipes);
        $heard = hrtime(true) / 1e9;
        while ($pipes !== []) {
            $before = \strlen($text[1]) + \strlen($text[2]);
            foreach ($pipes as $number => $pipe) {
                $text[$number] .= $chunk = (string) fread($pipe, 65_536);
                if ($chunk === '' && feof($pipe)) {
                    unset($pipes[$number]);
                }
            }
            if ($kill !== null && str_contains($text[1], $kill[0])) {
                proc_terminate($process, $kill[1]);
                $kill = null;
            }
            if (\strlen($text[1]) + \strlen($text[2]) > $before) {
                $heard = hrtime(true) / 1e9;
            } elseif (hrtime(true) / 1e9 > $heard + self::DEADLINE) {
                proc_terminate($process, SIGKILL);
                throw new \RuntimeException("The program hangs. Output: $text[1]$text[2]");
            } elseif ($pipes !== []) {
                usleep(1_000);
            }
        }

        return [$text[1], $text[2]];
    }

    /**
     * @param resource $process
     *
     * @return array<string, mixed>
     */
    private static function end($process): array
    {
        $deadline = hrtime(true) / 1e9 + self::DEADLINE;
        while (($status = proc_get_status($process))['running']) {
            if (hrtime(true) / 1e9 > $deadline) {
                proc_terminate($process, SIGKILL);
                throw new \RuntimeException('The program has closed its output and hangs');
            }
            usleep(2000);
        }
        proc_close($process);

        return $status;
    }
}
