<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** A program with a server, in a process of its own. */
final class ServerProcess
{
    private const DEADLINE = 20.0;

    /** @var array{int, string}|null */
    private ?array $end = null;
    private bool $signalled = false;

    /**
     * @param resource $process
     * @param resource $output
     */
    private function __construct(
        private $process,
        private $output,
        private readonly string $program,
        private readonly string $errors,
        public readonly string $address,
    ) {
    }

    /**
     * @param string $routes PHP code that adds to `$routes`, a Router
     * @param string $arguments of `App::http()` after the address
     */
    public static function start(string $routes, string $arguments = '', string $address = '127.0.0.1:0', string $app = ''): self
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($program, self::program($routes, $arguments, $address, $app));
        $errors = "$program.log";
        $command = [PHP_BINARY, '-n', '-d', 'extension=' . self::library(), '-d', 'display_errors=stderr', $program];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['file', $errors, 'w']], $pipes);
        stream_set_timeout($pipes[1], (int) self::DEADLINE);
        $first = trim((string) fgets($pipes[1]));
        if ($first === '') {
            proc_terminate($process, 9);
            throw new \RuntimeException('The server does not start: ' . file_get_contents($errors));
        }

        return new self($process, $pipes[1], $program, $errors, $first);
    }

    /** The library this process has loaded. */
    private static function library(): string
    {
        preg_match('{\S+/libweft\.so}', (string) file_get_contents('/proc/self/maps'), $path);

        return $path[0] ?? 'weft';
    }

    private static function program(string $routes, string $arguments, string $address, string $app): string
    {
        $autoload = var_export(\dirname(__DIR__, 2) . '/autoload.php', true);

        return <<<PHP
            <?php
            require $autoload;
            use Weft\App;
            use Weft\Http\{BadRequest, BodyWriter, Certificate, Compression, Cookie, EventWriter, FormLimits, HttpException, Limits, NotFound, Request, Response, Router, ServerSentEvent, Tls, TlsFailed, WebSocket};
            use function Weft\{async, delay, tasks};
            \$app = new App($app);
            \$routes = \$app->http('$address'$arguments);
            $routes
            \$app->run(static function (array \$addresses): void { echo \$addresses[0], "\n"; });
            echo "ended\n";
            PHP;
    }

    /** Bytes on a connection of their own, as they are; what comes back until the server closes it or says nothing for a while. */
    public function exchange(string $bytes, float $patience = 5.0): string
    {
        $socket = $this->connect();
        fwrite($socket, $bytes);

        return self::readAll($socket, $patience);
    }

    /** @return resource */
    public function connect()
    {
        $address = str_starts_with($this->address, 'unix:') ? 'unix://' . substr($this->address, 5) : "tcp://$this->address";
        $socket = stream_socket_client($address, $code, $message, 5.0);

        return $socket === false ? throw new \RuntimeException("$address: $message") : $socket;
    }

    /** @param resource $socket */
    public static function readAll($socket, float $patience = 5.0): string
    {
        stream_set_timeout($socket, (int) $patience, (int) (($patience - (int) $patience) * 1e6));
        $text = '';
        while (!feof($socket)) {
            $chunk = fread($socket, 65536);
            if ($chunk === false || $chunk === '' && stream_get_meta_data($socket)['timed_out']) {
                break;
            }
            $text .= $chunk;
        }

        return $text;
    }

    /** @return array{int, string} exit code and output of curl */
    public function curl(string $path, string ...$arguments): array
    {
        $unix = str_starts_with($this->address, 'unix:');
        $url = $unix ? "http://localhost$path" : "http://$this->address$path";
        $socket = $unix ? ['--unix-socket', substr($this->address, 5)] : [];
        $process = proc_open(['curl', '-sS', '--max-time', '10', ...$socket, ...$arguments, $url], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
        $output = stream_get_contents($pipes[1]);
        $errors = stream_get_contents($pipes[2]);

        return [proc_close($process), $output . $errors];
    }

    public function get(string $path, string ...$arguments): string
    {
        return $this->curl($path, '-i', ...$arguments)[1];
    }

    public function log(): string
    {
        return (string) file_get_contents($this->errors);
    }

    /** Kibibytes of memory. */
    public function resident(): int
    {
        preg_match('/^VmRSS:\s+(\d+)/m', (string) file_get_contents("/proc/{$this->pid()}/status"), $found);

        return (int) $found[1];
    }

    /** Seconds it has computed. */
    public function cpu(): float
    {
        $fields = explode(' ', substr((string) strrchr((string) file_get_contents("/proc/{$this->pid()}/stat"), ')'), 2));

        return ((int) $fields[11] + (int) $fields[12]) / 100;
    }

    private function pid(): int
    {
        return proc_get_status($this->process)['pid'];
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

    /** Ends a server that would not end by itself. */
    public function kill(): void
    {
        $this->signal(9);
    }

    /** Lets it end by itself. @return array{int, string} as {@see self::stop()} */
    public function end(): array
    {
        $this->signalled = true;

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
        @unlink($this->program);
        @unlink($this->errors);

        return $this->end = [$status['exitcode'], $output];
    }
}
