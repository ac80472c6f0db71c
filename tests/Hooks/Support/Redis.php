<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

/** A Redis server of one test case. */
final class Redis
{
    public readonly int $port;
    /** @var resource */
    private $process;

    /** Null where Redis is not installed. */
    public static function start(): ?self
    {
        $program = \array_filter(['/usr/bin/redis-server', '/usr/local/bin/redis-server'], is_executable(...));

        return $program === [] ? null : new self(\reset($program));
    }

    private function __construct(string $program)
    {
        $probe = \stream_socket_server('tcp://127.0.0.1:0');
        $this->port = (int) \substr((string) \strrchr((string) \stream_socket_get_name($probe, false), ':'), 1);
        \fclose($probe);
        $command = [$program, '--port', (string) $this->port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', \sys_get_temp_dir()];
        $this->process = \proc_open($command, [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']], $pipes)
            ?: throw new \RuntimeException("$program does not start");
        for ($deadline = \microtime(true) + 60.0; \microtime(true) < $deadline; \usleep(10_000)) {
            if (@\stream_socket_client("tcp://127.0.0.1:$this->port") !== false) {
                return;
            }
        }
        throw new \RuntimeException("$program does not answer on port $this->port");
    }

    /** The reply to one command, in the protocol's own form. */
    public function command(string $command): string
    {
        $connection = \stream_socket_client("tcp://127.0.0.1:$this->port") ?: throw new \RuntimeException('Redis refuses a connection');
        \fwrite($connection, "$command\r\nQUIT\r\n");

        return (string) \stream_get_contents($connection);
    }

    public function __destruct()
    {
        \proc_terminate($this->process);
        \proc_close($this->process);
    }
}
