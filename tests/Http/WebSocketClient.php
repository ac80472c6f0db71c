<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Tests\Grpc\Wire;

/** Says exactly what a test wants it to say, right or wrong. */
final class WebSocketClient
{
    private const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

    /** @param resource $socket */
    private function __construct(private $socket, public readonly string $answer)
    {
    }

    /** @param string $more header fields, each with its line break */
    public static function open(ServerProcess $server, string $path = '/', string $more = '', string $frames = ''): self
    {
        $socket = $server->connect();
        fwrite($socket, self::request($path, $more) . $frames);
        $answer = '';
        while (!str_ends_with($answer, "\r\n\r\n") && ($line = fgets($socket)) !== false) {
            $answer .= $line;
        }

        return new self($socket, $answer);
    }

    public static function request(string $path = '/', string $more = '', string $key = self::KEY, string $version = '13'): string
    {
        return "GET $path HTTP/1.1\r\nHost: weft.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
            . "Sec-WebSocket-Key: $key\r\nSec-WebSocket-Version: $version\r\n$more\r\n";
    }

    /** The head of a handshake over HTTP/2 (RFC 8441). */
    public static function connect(int $stream, string $path, string $protocol = 'websocket'): string
    {
        return Wire::head($stream, [
            ':method' => 'CONNECT', ':protocol' => $protocol, ':scheme' => 'http', ':path' => $path, ':authority' => 'test',
            'sec-websocket-version' => '13',
        ]);
    }

    public static function frame(int $opcode, string $data, bool $isLast = true, bool $isMasked = true): string
    {
        $length = \strlen($data);
        $mask = $isMasked ? 0x80 : 0;
        $head = \chr($opcode | ($isLast ? 0x80 : 0)) . match (true) {
            $length < 126 => \chr($mask | $length),
            $length < 65536 => \chr($mask | 126) . pack('n', $length),
            default => \chr($mask | 127) . pack('J', $length),
        };
        if (!$isMasked) {
            return $head . $data;
        }

        return "{$head}mask" . ($data ^ str_pad('', $length, 'mask'));
    }

    public function write(string $bytes): void
    {
        fwrite($this->socket, $bytes);
    }

    public function text(string $text): void
    {
        $this->write(self::frame(1, $text));
    }

    /** @return array{int, string}|null opcode and data of the next frame; null where the connection has ended */
    public function read(): ?array
    {
        [$first, $data] = $this->frameRead() ?? [null, ''];

        return $first === null ? null : [$first & 0x0f, $data];
    }

    /** @return array{int, string}|null first byte and data of the next frame; null where the connection has ended */
    public function frameRead(): ?array
    {
        $head = $this->bytes(2);
        if (\strlen($head) < 2) {
            return null;
        }
        $length = \ord($head[1]) & 0x7f;
        $length = match ($length) {
            126 => unpack('n', $this->bytes(2))[1],
            127 => unpack('J', $this->bytes(8))[1],
            default => $length,
        };

        return [\ord($head[0]), $this->bytes($length)];
    }

    /** The code with which the server closes, after whatever else it has sent; null where it does not. */
    public function closeCode(): ?int
    {
        while (($frame = $this->read()) !== null) {
            if ($frame[0] === 8) {
                return unpack('n', $frame[1])[1];
            }
        }

        return null;
    }

    public function disconnect(): void
    {
        fclose($this->socket);
    }

    private function bytes(int $length): string
    {
        return $length === 0 ? '' : (string) stream_get_contents($this->socket, $length);
    }
}
