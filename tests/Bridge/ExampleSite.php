<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge;

use Weft\Tests\Timing;

/** An example application, served by Weft or by PHP's own server, with a directory of its own for what it writes. */
abstract class ExampleSite
{
    /** @var list<resource> */
    private array $processes = [];

    private readonly string $log;

    public string $address = '';

    /**
     * @param string $example the directory of the application
     * @param array<string, string> $environment of its processes
     */
    protected function __construct(private readonly string $example, protected readonly string $directory, protected array $environment)
    {
        $this->log = "$directory/server.log";
    }

    public function log(): string
    {
        return (string) @\file_get_contents($this->log);
    }

    public function stop(): void
    {
        foreach (\array_reverse($this->processes) as $process) {
            \proc_terminate($process);
            Timing::until(static fn(): bool => !\proc_get_status($process)['running'], 'the server ends');
            \proc_close($process);
        }
        $this->processes = [];
    }

    protected function serveByWeft(string ...$arguments): void
    {
        $this->start([...self::php(), ...\array_values($arguments)], $this->log);
        Timing::until(function (): bool {
            \preg_match('/listening on (\S+)/', $this->log(), $found);
            $this->address = $found[1] ?? '';

            return $this->address !== '';
        }, 'the server listens');
    }

    protected function serveByPhp(): void
    {
        $socket = \stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('no port is free');
        $this->address = (string) \stream_socket_get_name($socket, false);
        \fclose($socket);
        $this->start([...self::php(), '-d', 'variables_order=EGPCS', '-S', $this->address, '-t', 'public', 'public/index.php'], $this->log);
        Timing::until(fn(): bool => @\stream_socket_client("tcp://{$this->address}") !== false, 'the server listens');
    }

    /** Runs a command of the application's own program and returns what it prints. */
    protected function command(string $program, string ...$arguments): string
    {
        $errors = "$this->directory/$program.log";
        $process = \proc_open([...self::php(), $program, ...\array_values($arguments)], [1 => ['pipe', 'w'], 2 => ['file', $errors, 'w']], $pipes, $this->example, $this->environment);
        \assert(\is_resource($process));
        $output = (string) \stream_get_contents($pipes[1]);
        if (\proc_close($process) !== 0) {
            throw new \RuntimeException("$program {$arguments[0]} failed: $output" . \file_get_contents($errors));
        }

        return $output;
    }

    /** @param list<string> $command */
    protected function start(array $command, string $log): void
    {
        $process = \proc_open($command, [1 => ['file', $log, 'a'], 2 => ['file', $log, 'a']], $pipes, $this->example, $this->environment);
        \assert(\is_resource($process));
        $this->processes[] = $process;
    }

    /** @return list<string> with the extension that this process has */
    private static function php(): array
    {
        \preg_match('{\S+/libweft\.so}', (string) \file_get_contents('/proc/self/maps'), $library);

        return [\PHP_BINARY, '-d', 'extension=' . ($library[0] ?? 'weft')];
    }
}
