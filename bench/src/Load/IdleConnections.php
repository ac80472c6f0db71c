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
     * Of HTTP/1.1.
     *
     * @param int $count bounded by the limit of open files: `ulimit -n`
     *
     * @throws BenchmarkException when one cannot be opened, gets no 200 or is closed after it
     */
    public static function open(int $port, string $path, int $count): self
    {
        // A server announces that it closes; the end of the connection may arrive later.
        $isGood = static fn (string $answer): bool => str_starts_with($answer, 'HTTP/1.1 200') && stripos($answer, "\r\nconnection: close") === false;

        return self::answered($port, "GET $path HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", $isGood, $count);
    }

    /**
     * Of gRPC, after a call each.
     *
     * @param string $path `/package.Service/Method` of a method that answers an empty message
     * @param int $count bounded by the limit of open files: `ulimit -n`
     *
     * @throws BenchmarkException when one cannot be opened, gets no message or is closed after it
     */
    public static function openGrpc(int $port, string $path, int $count): self
    {
        $frame = static fn (int $type, int $flags, int $stream, string $payload): string => substr(pack('N', strlen($payload)), 1) . pack('CCN', $type, $flags, $stream) . $payload;
        $fields = [':method' => 'POST', ':scheme' => 'http', ':path' => $path, ':authority' => 'idle', 'content-type' => 'application/grpc', 'te' => 'trailers'];
        $head = '';
        foreach ($fields as $name => $value) {
            // RFC 7541 §6.2.2: written out, not indexed.
            $head .= "\0" . chr(strlen($name)) . $name . chr(strlen($value)) . $value;
        }
        $bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . $frame(4, 0, 0, '') . $frame(1, 4, 1, $head) . $frame(0, 1, 1, "\0\0\0\0\0");
        // The last thing of a call is a HEADERS frame that ends its stream.
        $isGood = static fn (string $answer): bool => preg_match('/\x01\x05\0\0\0\x01/', $answer) === 1 && preg_match('/\x00[\x00\x01]\0\0\0\x01\0/', $answer) === 1;

        return self::answered($port, $bytes, $isGood, $count);
    }

    /** @param \Closure(string): bool $isGood whether the received bytes are a response */
    private static function answered(int $port, string $request, \Closure $isGood, int $count): self
    {
        $sockets = [];
        for ($i = 0; $i < $count; ++$i) {
            $socket = @stream_socket_client("tcp://127.0.0.1:$port", $code, $message, self::TIMEOUT_SECONDS)
                ?: throw new BenchmarkException("connection $i of $count: $message");
            stream_set_timeout($socket, (int) self::TIMEOUT_SECONDS);
            fwrite($socket, $request);
            $answer = '';
            do {
                $chunk = (string) fread($socket, 8192);
                $answer .= $chunk;
            } while ($chunk !== '' && !$isGood($answer) && !str_starts_with($answer, 'HTTP/1.1'));
            $isGood($answer) && !feof($socket)
                || throw new BenchmarkException("connection $i of $count answered: " . json_encode(substr($answer, 0, 80), JSON_INVALID_UTF8_SUBSTITUTE));
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
