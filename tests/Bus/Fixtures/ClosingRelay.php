<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Weft\Runtime\Task;

use function Weft\detach;

/** Stands between a client and RabbitMQ, and closes each connection with an error on which a message that contains a text is published. */
final class ClosingRelay
{
    private const CHUNK = 65_536;
    /** connection.close with 541, a frame of AMQP 0-9-1. */
    private const CLOSE = "\x01\0\0\0\0\0\x19\0\x0a\0\x32\x02\x1d\x0eINTERNAL_ERROR\0\0\0\0\xce";

    public readonly string $dsn;
    /** Connections closed with the error. */
    public int $closed = 0;
    private readonly string $broker;
    /** @var resource */
    private readonly mixed $server;
    /** @var list<Task> */
    private array $tasks = [];

    public function __construct(string $dsn, private readonly string $poison)
    {
        $host = (string) \parse_url($dsn, \PHP_URL_HOST) . ':' . (string) (\parse_url($dsn, \PHP_URL_PORT) ?? 5672);
        $this->broker = "tcp://{$host}";
        $server = \stream_socket_server('tcp://127.0.0.1:0');
        \assert(\is_resource($server));
        $this->server = $server;
        $this->dsn = \str_replace("@{$host}", '@' . (string) \stream_socket_get_name($server, false), $dsn);
        $this->tasks[] = detach($this->accept(...));
    }

    public function stop(): void
    {
        foreach ($this->tasks as $task) {
            $task->cancel();
        }
    }

    private function accept(): void
    {
        while (($client = \stream_socket_accept($this->server, 3600.0)) !== false) {
            $this->tasks[] = detach(fn() => $this->relay($client));
        }
    }

    /** @param resource $client */
    private function relay(mixed $client): void
    {
        $broker = \stream_socket_client($this->broker);
        \assert(\is_resource($broker));
        while (true) {
            [$read, $write, $except] = [[$client, $broker], null, null];
            \stream_select($read, $write, $except, 3600, 0);
            foreach ($read as $from) {
                $bytes = \fread($from, self::CHUNK);
                if ($bytes === '' || $bytes === false) {
                    return;
                }
                if ($from === $client && \str_contains($bytes, $this->poison)) {
                    ++$this->closed;
                    \fwrite($client, self::CLOSE);
                    \fread($client, self::CHUNK);
                    return;
                }
                \fwrite($from === $client ? $broker : $client, $bytes);
            }
        }
    }
}
