<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

use Weft\Runtime\Task;

use function Weft\async;

/** An HTTP server in a task, which answers no request before so many are there at once. */
final class SlowServer
{
    public readonly string $url;
    /** The largest number of requests that were there at once. */
    public int $most = 0;
    private readonly Task $task;
    /** @var list<resource> */
    private array $waiting = [];

    public function __construct(int $quorum, private readonly string $body = 'ok', private readonly string $type = 'text/plain')
    {
        $server = \stream_socket_server('tcp://127.0.0.1:0') ?: throw new \RuntimeException('no port');
        $this->url = 'http://' . \stream_socket_get_name($server, false) . '/';
        $this->task = async(function () use ($server, $quorum): void {
            while (true) {
                $connection = \stream_socket_accept($server, 86_400.0);
                if ($connection !== false) {
                    async(fn() => $this->serve($connection, $quorum));
                }
            }
        });
    }

    public function close(): void
    {
        $this->task->cancel();
    }

    /** @param resource $connection */
    private function serve($connection, int $quorum): void
    {
        $length = 0;
        while (($line = \fgets($connection)) !== false && \rtrim($line) !== '') {
            $length = \stripos($line, 'content-length:') === 0 ? (int) \substr($line, 15) : $length;
        }
        $length > 0 && \stream_get_contents($connection, $length);
        $this->waiting[] = $connection;
        $this->most = \max($this->most, \count($this->waiting));
        if (\count($this->waiting) >= $quorum) {
            foreach ($this->waiting as $waiting) {
                \fwrite($waiting, "HTTP/1.1 200 OK\r\nContent-Type: $this->type\r\nContent-Length: " . \strlen($this->body) . "\r\nConnection: close\r\n\r\n$this->body");
                \fclose($waiting);
            }
            $this->waiting = [];
        }
    }
}
