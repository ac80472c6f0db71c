<?php

declare(strict_types=1);

namespace Weft\Bench\Guard;

use Weft\Bench\BenchmarkException;

/** Sends requests of HTTP/1.1 in an order that is the same each time: counts must not depend on who is faster. */
final class Client
{
    /** @var list<resource> */
    private array $sockets = [];
    private readonly string $request;

    public function __construct(private readonly int $pid, int $port, string $path, int $connections)
    {
        $this->request = "GET $path HTTP/1.1\r\nHost: 127.0.0.1:$port\r\n\r\n";
        for ($i = 0; $i < $connections; ++$i) {
            $socket = @stream_socket_client("tcp://127.0.0.1:$port", $code, $message, 60.0) ?: throw new BenchmarkException("cannot connect: $message");
            stream_set_timeout($socket, 60);
            $this->sockets[] = $socket;
        }
    }

    /** Sends so many rounds of one request on each connection. With several, all of a round arrive before the server reads the first. */
    public function send(int $rounds): void
    {
        for ($i = 0; $i < $rounds; ++$i) {
            count($this->sockets) > 1 && posix_kill($this->pid, SIGSTOP);
            array_map(fn ($socket) => fwrite($socket, $this->request), $this->sockets);
            count($this->sockets) > 1 && posix_kill($this->pid, SIGCONT);
            array_map(self::receive(...), $this->sockets);
        }
    }

    /** @param resource $socket */
    private static function receive($socket): void
    {
        $status = fgets($socket);
        if ($status !== "HTTP/1.1 200 OK\r\n") {
            throw new BenchmarkException('the server answers ' . json_encode($status));
        }
        $length = 0;
        while (($line = fgets($socket)) !== false && $line !== "\r\n") {
            $length = preg_match('/^content-length: (\d+)/i', $line, $match) ? (int) $match[1] : $length;
        }
        stream_get_contents($socket, $length);
    }
}
