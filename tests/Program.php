<?php

declare(strict_types=1);

namespace Weft\Tests;

/** A program in a process of its own, with the extension this process has. It prints the address of its server first. */
class Program
{
    /** PHP code of a function that waits in the program until the test calls {@see self::open()}. */
    public const GATE = 'function gate(string $name): void { while (!is_file(getenv("' . self::GATES . '") . ".$name")) { \Weft\delay(0.002); } }';
    private const GATES = 'WEFT_TEST_GATES';

    /** @var array{int, string}|null */
    private ?array $end = null;
    private bool $signalled = false;

    /**
     * @param resource $process
     * @param resource $output
     */
    final private function __construct(
        private $process,
        private $output,
        private readonly string $errors,
        private readonly ?string $file,
        public readonly string $address,
    ) {
    }

    /**
     * @param list<string> $command what runs the program, after PHP and its extension
     * @param string|null $file is removed at the end
     */
    public static function launch(array $command, ?string $file = null): static
    {
        $errors = (string) tempnam(sys_get_temp_dir(), 'weft');
        $command = [PHP_BINARY, '-n', '-d', 'extension=' . Extension::library(), '-d', 'display_errors=stderr', ...$command];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['file', $errors, 'w']], $pipes, null, ['WEFT_LOG_LEVEL' => 'info', self::GATES => $errors] + getenv());
        stream_set_timeout($pipes[1], (int) Timing::DEADLINE);
        $first = trim((string) fgets($pipes[1]));
        if ($first === '') {
            proc_terminate($process, 9);
            throw new \RuntimeException('The server does not start: ' . file_get_contents($errors));
        }

        return new static($process, $pipes[1], $errors, $file, $first);
    }

    /**
     * @param string|null $from the client's address
     *
     * @return resource
     */
    public function connect(?string $from = null)
    {
        $address = str_starts_with($this->address, 'unix:') ? 'unix://' . substr($this->address, 5) : "tcp://$this->address";
        $context = stream_context_create($from === null ? [] : ['socket' => ['bindto' => "$from:0"]]);
        $socket = @stream_socket_client($address, $code, $message, Timing::DEADLINE, STREAM_CLIENT_CONNECT, $context);
        $socket === false || stream_set_timeout($socket, (int) Timing::DEADLINE);

        return $socket === false ? throw new \RuntimeException("$address: $message") : $socket;
    }

    public function pid(): int
    {
        return proc_get_status($this->process)['pid'];
    }

    /** Kibibytes of memory. */
    public function resident(): int
    {
        preg_match('/^VmRSS:\s+(\d+)/m', (string) file_get_contents("/proc/{$this->pid()}/status"), $found);

        return (int) $found[1];
    }

    /** The most memory that it has had, in kibibytes. */
    public function peak(): int
    {
        preg_match('/^VmHWM:\s+(\d+)/m', (string) file_get_contents("/proc/{$this->pid()}/status"), $found);

        return (int) $found[1];
    }

    /** Seconds it has computed. */
    public function cpu(): float
    {
        $fields = explode(' ', substr((string) strrchr((string) file_get_contents("/proc/{$this->pid()}/stat"), ')'), 2));

        return ((int) $fields[11] + (int) $fields[12]) / 100;
    }

    /** How many sockets it has open. */
    public function sockets(): int
    {
        $links = array_map(static fn(string $file): string => (string) @readlink($file), glob("/proc/{$this->pid()}/fd/*") ?: []);

        return \count(preg_grep('/^socket:/', $links) ?: []);
    }

    /** Waits until the program ends by itself, and returns what it printed after its first line. */
    public function output(): string
    {
        stream_set_blocking($this->output, true);

        return $this->end()[1];
    }

    public function log(): string
    {
        return (string) file_get_contents($this->errors);
    }

    /** Waits until the log has the text. */
    public function awaitLog(string $text): bool
    {
        $deadline = microtime(true) + Timing::DEADLINE;
        while (!str_contains($this->log(), $text)) {
            if (microtime(true) > $deadline) {
                return false;
            }
            usleep(5000);
        }

        return true;
    }

    /** Lets the program go on where it waits for this gate. */
    public function open(string $gate): void
    {
        touch("$this->errors.$gate");
    }

    /** Whether the server takes connections. */
    public function listens(): bool
    {
        $socket = @stream_socket_client("tcp://$this->address", timeout: Timing::DEADLINE);

        return $socket !== false && fclose($socket);
    }

    public function signal(int $number = 15): void
    {
        // A second one would end the server at once.
        $this->signalled = true;
        proc_terminate($this->process, $number);
    }

    /** Ends a server that would not end by itself. */
    public function kill(): void
    {
        $this->signal(9);
    }

    /** A program that signals itself is not signalled again: that would end it at once. */
    public function endsItself(): void
    {
        $this->signalled = true;
    }

    /** Lets it end by itself. @return array{int, string} as {@see self::stop()} */
    public function end(): array
    {
        $this->endsItself();

        return $this->stop();
    }

    public function isRunning(): bool
    {
        return proc_get_status($this->process)['running'];
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
        $deadline = microtime(true) + Timing::DEADLINE;
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
        array_map(unlink(...), array_filter([$this->errors, $this->file, ...glob("$this->errors.*")], is_string(...)));

        return $this->end = [$status['exitcode'], $output];
    }
}
