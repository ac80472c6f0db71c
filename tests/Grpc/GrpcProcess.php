<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

/** A program with a gRPC server, in a process of its own. It prints its address first. */
final class GrpcProcess
{
    private const DEADLINE = 20.0;

    /** @var array{int, string}|null */
    private ?array $end = null;
    private bool $signalled = false;

    /**
     * @param resource $process
     * @param resource $output
     */
    private function __construct(private $process, private $output, private readonly string $errors, public readonly string $address)
    {
    }

    /** @param list<string> $command what runs the program, after PHP and its extension */
    public static function start(array $command): self
    {
        $errors = (string) tempnam(sys_get_temp_dir(), 'weft-grpc');
        $command = [PHP_BINARY, '-n', '-d', 'extension=' . self::library(), '-d', 'display_errors=stderr', ...$command];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['file', $errors, 'w']], $pipes);
        stream_set_timeout($pipes[1], (int) self::DEADLINE);
        $first = trim((string) fgets($pipes[1]));
        if ($first === '') {
            proc_terminate($process, 9);
            throw new \RuntimeException('The server does not start: ' . file_get_contents($errors));
        }

        return new self($process, $pipes[1], $errors, $first);
    }

    /** The library this process has loaded. */
    private static function library(): string
    {
        preg_match('{\S+/libweft\.so}', (string) file_get_contents('/proc/self/maps'), $path);

        return $path[0] ?? 'weft';
    }

    /**
     * Calls with curl.
     *
     * @param string $body bytes as they go over the wire
     */
    public function post(string $path, string $body, string ...$arguments): Answer
    {
        $fields = (string) tempnam(sys_get_temp_dir(), 'weft-grpc');
        $command = ['curl', '-sS', '--max-time', '10', '--http2-prior-knowledge', '-D', $fields, '-H', 'te: trailers', '-H', 'expect:', '--data-binary', '@-', ...$arguments, "http://$this->address$path"];
        if (array_filter($arguments, static fn(string $argument): bool => str_starts_with(strtolower($argument), 'content-type:')) === []) {
            array_splice($command, 1, 0, ['-H', 'content-type: application/grpc']);
        }
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
        fwrite($pipes[0], $body);
        fclose($pipes[0]);
        $output = (string) stream_get_contents($pipes[1]);
        $errors = (string) stream_get_contents($pipes[2]);
        $code = proc_close($process);
        $head = (string) file_get_contents($fields);
        unlink($fields);

        return new Answer($code, $head, $output, $errors);
    }

    /** Waits until the program ends by itself, and returns what it printed after its first line. */
    public function output(): string
    {
        stream_set_blocking($this->output, true);
        $this->signalled = true;

        return $this->stop()[1];
    }

    public function log(): string
    {
        return (string) file_get_contents($this->errors);
    }

    /** Waits until the log has the text. */
    public function awaitLog(string $text): bool
    {
        $deadline = microtime(true) + self::DEADLINE;
        while (!str_contains($this->log(), $text)) {
            if (microtime(true) > $deadline) {
                return false;
            }
            usleep(5000);
        }

        return true;
    }

    public function signal(int $number = 15): void
    {
        // A second one would end the server at once.
        $this->signalled = true;
        proc_terminate($this->process, $number);
    }

    /** A program that signals itself is not signalled again: that would end it at once. */
    public function endsItself(): void
    {
        $this->signalled = true;
    }

    /** @return array{int, string} exit code and what it printed, after SIGTERM where it still runs */
    public function stop(): array
    {
        if ($this->end !== null) {
            return $this->end;
        }
        $status = proc_get_status($this->process);
        if ($status['running'] && !$this->signalled) {
            $this->signal();
        }
        $deadline = microtime(true) + self::DEADLINE;
        while ($status['running']) {
            if (microtime(true) > $deadline) {
                proc_terminate($this->process, 9);
                throw new \RuntimeException('The server does not stop: ' . $this->log());
            }
            usleep(2000);
            $status = proc_get_status($this->process);
        }
        $output = (string) stream_get_contents($this->output);
        proc_close($this->process);
        @unlink($this->errors);

        return $this->end = [$status['exitcode'], $output];
    }
}
