<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Tests\Timing;

/** An HTTP/2 connection spoken by hand, frame by frame. */
final class Wire
{
    public const DATA = 0;
    public const HEADERS = 1;
    public const SETTINGS = 4;
    public const PING = 6;
    public const GOAWAY = 7;
    public const WINDOW_UPDATE = 8;
    public const END_STREAM = 1;
    public const END_HEADERS = 4;
    public const ACK = 1;

    private string $read = '';
    /** @var list<array{int, int, int, string}> frames that were read before those that were waited for */
    private array $passed = [];

    /** @param resource $socket */
    public function __construct(private $socket)
    {
        $this->send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . self::frame(self::SETTINGS));
    }

    public static function frame(int $type, int $flags = 0, int $stream = 0, string $payload = ''): string
    {
        return substr(pack('N', \strlen($payload)), 1) . pack('CCN', $type, $flags, $stream) . $payload;
    }

    /**
     * The head of a call.
     *
     * @param array<string, string> $metadata
     */
    public static function call(int $stream, string $path, array $metadata = []): string
    {
        return self::head($stream, [':method' => 'POST', ':scheme' => 'http', ':path' => $path, ':authority' => 'test', 'content-type' => 'application/grpc', 'te' => 'trailers', ...$metadata]);
    }

    /**
     * The head of a request, its fields written out (RFC 7541 §6.2.2).
     *
     * @param array<string, string> $fields
     */
    public static function head(int $stream, array $fields, int $flags = 0): string
    {
        $block = '';
        foreach ($fields as $name => $value) {
            $block .= "\0" . \chr(\strlen($name)) . $name . \chr(\strlen($value)) . $value;
        }

        return self::frame(self::HEADERS, self::END_HEADERS | $flags, $stream, $block);
    }

    public function send(string $bytes): void
    {
        // A server that has hung up is what some are here for.
        @fwrite($this->socket, $bytes);
    }

    /**
     * The next frame of that type. Frames of other types are kept for later calls.
     *
     * @return array{int, int, string}|null flags, stream, payload; null when the server has closed the connection or is silent
     */
    public function await(int $type): ?array
    {
        foreach ($this->passed as $index => $frame) {
            if ($frame[0] === $type) {
                unset($this->passed[$index]);

                return \array_slice($frame, 1);
            }
        }
        $deadline = microtime(true) + Timing::DEADLINE;
        while (($frame = $this->next($deadline)) !== null && $frame[0] !== $type) {
            $this->passed[] = $frame;
        }

        return $frame === null ? null : \array_slice($frame, 1);
    }

    /** Whether the server closes the connection. */
    public function isClosed(): bool
    {
        $deadline = microtime(true) + Timing::DEADLINE;
        while ($this->next($deadline) !== null) {
        }

        return feof($this->socket);
    }

    public function close(): void
    {
        fclose($this->socket);
    }

    /** @return array{int, int, int, string}|null */
    private function next(float $deadline): ?array
    {
        while (true) {
            $length = \strlen($this->read) < 9 ? null : unpack('N', "\0" . $this->read)[1];
            if ($length !== null && \strlen($this->read) >= 9 + $length) {
                ['type' => $type, 'flags' => $flags, 'stream' => $stream] = unpack('Ctype/Cflags/Nstream', $this->read, 3);
                $payload = substr($this->read, 9, $length);
                $this->read = substr($this->read, 9 + $length);

                return [$type, $flags, $stream, $payload];
            }
            $left = $deadline - microtime(true);
            $ready = [$this->socket];
            $none = null;
            if ($left <= 0 || stream_select($ready, $none, $none, (int) $left, (int) (fmod($left, 1.0) * 1e6)) === 0) {
                return null;
            }
            $bytes = @fread($this->socket, 65_536);
            if ($bytes === false || $bytes === '') {
                return null;
            }
            $this->read .= $bytes;
        }
    }
}
