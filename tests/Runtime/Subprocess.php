<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use Weft\Tests\Extension;

/**
 * Runs a PHP program that may end the process it runs in.
 */
final class Subprocess
{
    /** Seconds. It only ends a hang. */
    private const DEADLINE = 60.0;

    private function __construct(
        public readonly int $exitCode,
        public readonly ?int $signal,
        public readonly string $output,
        public readonly string $errors,
        public readonly float $seconds,
    ) {
    }

    /**
     * @param string $code follows `use function Weft\{…}`
     * @param array{string, int}|null $kill a line to wait for and the signal to send then
     * @param list<string> $extensions of PHP that the program needs, in the order in which they can be loaded; those that PHP has built in are skipped
     * @param list<string> $options of PHP, such as `opcache.jit=tracing`
     * @param list<string> $under the command that PHP is an argument of, such as `strace -f`
     */
    public static function run(string $code, ?array $kill = null, array $extensions = [], array $options = [], array $under = []): self
    {
        $file = tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($file, self::program($code));
        $from = hrtime(true);
        $process = proc_open(
            [...$under, PHP_BINARY, '-n', ...self::extensions(['pcntl', 'posix', ...$extensions]), ...self::options($options), '-d', 'display_errors=stderr', $file],
            [1 => ['pipe', 'w'], 2 => ['pipe', 'w']],
            $pipes,
        );
        try {
            [$output, $errors] = self::drain($process, $pipes, $kill);
            $status = self::end($process);
        } finally {
            unlink($file);
        }

        return new self(
            $status['exitcode'],
            $status['signaled'] ? $status['termsig'] : null,
            $output,
            $errors,
            (hrtime(true) - $from) / 1e9,
        );
    }

    private static function program(string $code): string
    {
        $autoload = var_export(dirname(__DIR__, 2) . '/autoload.php', true);

        return <<<PHP
            <?php
            require $autoload;
            use Weft\Runtime\{CancelledException, Channel, Mutex, Semaphore};
            use function Weft\{all, async, current, delay, detach, run, scope, shield, signal, tasks, timeout, yieldNow};
            $code
            PHP;
    }

    /**
     * @param list<string> $options
     *
     * @return list<string>
     */
    private static function options(array $options): array
    {
        return array_merge(...array_map(static fn(string $option): array => ['-d', $option], $options));
    }

    /**
     * @param list<string> $names
     *
     * @return list<string>
     */
    private static function extensions(array $names): array
    {
        $directory = ini_get('extension_dir');
        $arguments = [];
        foreach ($names as $name) {
            if (is_file("$directory/$name.so")) {
                array_push($arguments, '-d', ($name === 'opcache' ? 'zend_' : '') . "extension=$name");
            }
        }

        return [...$arguments, '-d', 'extension=' . Extension::library()];
    }

    /**
     * @param resource $process
     * @param array<int, resource> $pipes
     * @param array{string, int}|null $kill
     *
     * @return array{string, string}
     */
    private static function drain($process, array $pipes, ?array $kill): array
    {
        $text = [1 => '', 2 => ''];
        $deadline = hrtime(true) / 1e9 + self::DEADLINE;
        while ($pipes !== []) {
            $ready = $pipes;
            $none = [];
            if (stream_select($ready, $none, $none, 1) === 0 && hrtime(true) / 1e9 > $deadline) {
                proc_terminate($process, SIGKILL);
                throw new \RuntimeException("The program hangs. Output: $text[1]$text[2]");
            }
            foreach ($ready as $number => $pipe) {
                $text[$number] .= $chunk = (string) fread($pipe, 8192);
                if ($chunk === '' && feof($pipe)) {
                    unset($pipes[$number]);
                }
            }
            if ($kill !== null && str_contains($text[1], $kill[0])) {
                proc_terminate($process, $kill[1]);
                $kill = null;
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
