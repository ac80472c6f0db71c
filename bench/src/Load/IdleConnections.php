<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

use Weft\Bench\BenchmarkException;

/** Keep-alive connections that have had one answer each and are then left alone. */
final class IdleConnections
{
    private const TIMEOUT_SECONDS = 10.0;

    /** @param list<resource> $sockets */
    private function __construct(private array $sockets)
    {
    }

    /**
     * @param int $count bounded by the limit of open files: `ulimit -n`
     *
     * @throws BenchmarkException when one cannot be opened, gets no 200 or is closed after it
     */
    public static function open(int $port, string $path, int $count): self
    {
        $request = "GET $path HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        $sockets = [];
        for ($i = 0; $i < $count; ++$i) {
            $socket = @stream_socket_client("tcp://127.0.0.1:$port", $code, $message, self::TIMEOUT_SECONDS)
                ?: throw new BenchmarkException("connection $i of $count: $message");
            stream_set_timeout($socket, (int) self::TIMEOUT_SECONDS);
            fwrite($socket, $request);
            $answer = (string) fread($socket, 8192);
            // A server that is about to close says so; the end itself may arrive later.
            str_starts_with($answer, 'HTTP/1.1 200') && stripos($answer, "\r\nconnection: close") === false && !feof($socket)
                || throw new BenchmarkException("connection $i of $count answered: " . json_encode(substr($answer, 0, 80)));
            $sockets[] = $socket;
        }

        return new self($sockets);
    }

    /** How many of them the server has closed since. */
    public function closedByServer(): int
    {
        return count(array_filter($this->sockets, static function ($socket): bool {
            stream_set_blocking($socket, false);

            return fread($socket, 1) === '' && feof($socket);
        }));
    }

    public function close(): void
    {
        array_map(fclose(...), $this->sockets);
        $this->sockets = [];
    }
}
