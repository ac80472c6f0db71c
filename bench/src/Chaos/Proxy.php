<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

/** A proxy in front of a server, in a separate process, so that connections can be broken. */
final class Proxy
{
    public readonly int $port;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    public function __construct(int $port)
    {
        $command = [PHP_BINARY, '-n', __DIR__ . '/../../chaos/proxy.php', '0', '127.0.0.1', (string) $port];
        $this->process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes) ?: throw new \RuntimeException('cannot start the proxy');
        $this->pipes = $pipes;
        $this->port = (int) fgets($pipes[1]);
    }

    /** @return int connections that were cut */
    public function cut(): int
    {
        return $this->ask('cut');
    }

    /** @param float $seconds that every byte takes from now on */
    public function slow(float $seconds): int
    {
        return $this->ask("slow {$seconds}");
    }

    public function stop(): void
    {
        fclose($this->pipes[0]);
        proc_close($this->process);
    }

    private function ask(string $command): int
    {
        fwrite($this->pipes[0], "{$command}\n");

        return (int) fgets($this->pipes[1]);
    }
}
