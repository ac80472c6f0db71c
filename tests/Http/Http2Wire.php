<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** Frames of HTTP/2 (RFC 9113 §4.1), as a client may send them that keeps to no rules. */
final class Http2Wire
{
    public const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    public const DATA = 0;
    public const HEADERS = 1;
    public const PRIORITY = 2;
    public const RST_STREAM = 3;
    public const SETTINGS = 4;
    public const PING = 6;
    public const GOAWAY = 7;
    public const WINDOW_UPDATE = 8;
    public const CONTINUATION = 9;
    public const END_STREAM = 1;
    public const END_HEADERS = 4;
    public const PADDED = 8;
    /** :method GET, :scheme http, :path /, :authority a (RFC 7541 appendix A) */
    public const GET = "\x82\x86\x84\x41\x01a";
    public const POST = "\x83\x86\x84\x41\x01a";

    public static function frame(int $type, int $flags, int $stream, string $payload = ''): string
    {
        return substr(pack('N', \strlen($payload)), 1) . pack('CCN', $type, $flags, $stream) . $payload;
    }

    /** A request without a body for a path of less than 127 bytes. */
    public static function get(int $stream, string $path = '/'): string
    {
        return self::frame(self::HEADERS, self::END_STREAM | self::END_HEADERS, $stream, "\x82\x86\x04" . \chr(\strlen($path)) . "$path\x41\x01a");
    }

    /** @return list<array{int, int, string}> type, stream and payload of each whole frame */
    public static function parse(string $bytes): array
    {
        $frames = [];
        while (\strlen($bytes) >= 9) {
            $length = unpack('N', "\0" . substr($bytes, 0, 3))[1];
            $frames[] = [\ord($bytes[3]), unpack('N', substr($bytes, 5, 4))[1] & 0x7fff_ffff, substr($bytes, 9, $length)];
            $bytes = substr($bytes, 9 + $length);
        }

        return $frames;
    }
}
