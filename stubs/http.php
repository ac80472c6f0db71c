<?php

declare(strict_types=1);

namespace Weft\Native;

/** An HTTP server of the extension. It accepts and parses requests between two polls of PHP. */
final class HttpServer
{
    /**
     * @param array<string, int|float|null> $limits the properties of `Weft\Http\Limits`; times in seconds
     * @param list<string> $proxies addresses and networks, or `unix`; an empty list trusts no proxy
     * @param string $fields `x-forwarded`, `forwarded` or `none`
     */
    public static function open(array $limits, array $proxies, string $fields, bool $proxy_protocol): HttpServer
    {
    }

    /**
     * Accepts connections on an address from now on.
     *
     * @return string the address with its real port
     *
     * @throws \Weft\Http\InvalidAddressError
     * @throws \Weft\Http\ListenException
     * @throws \Weft\Http\TlsException
     *
     * @param list<array{string, string}> $certificates files of certificate and key; none is no TLS
     */
    public function listen(string $address, bool $share_port, array $certificates, ?string $client_authorities, bool $client_required): string
    {
    }

    /**
     * Reads the certificates again, for the connections to come.
     *
     * @throws \Weft\Http\TlsException those in use stay in use
     */
    public function reloadCertificates(): void
    {
    }

    /**
     * Events by request id: a `Weft\Http\Request` that arrived, or of one handed out before 1 when its client has
     * gone away and 2 when it is past its deadline. Empty when nothing has happened yet.
     *
     * @return array<int, \Weft\Http\Request|int>
     */
    public function next(int $max): mixed
    {
    }

    /** An operation that is announced when `next()` has events, once, and again after each call of `next()`. It has no outcome. */
    public function arrivals(): int
    {
    }

    /** How many handlers the limits allow at a time. */
    public function handlers(): int
    {
    }

    /** There are no more than that many fibers for handlers: fewer run, and fewer last, than the limits say. May be called again. */
    public function fit(int $fibers): void
    {
    }

    /**
     * Requests that were refused or failed before a handler since the last call, by reason: reason, number, and of the last one
     * the address and what is known of it. Says no more than once in ten seconds about each reason.
     *
     * Outcome: list<array{string, int, ?string, string}>, once there is something.
     */
    public function refused(): int
    {
    }

    /** Accepts no more connections; the open ones end with the answers to what is in flight. */
    public function stop(): void
    {
    }

    /** Outcome: null, once no connection is open. */
    public function drained(): int
    {
    }

    /** Ends every connection now. */
    public function abort(): void
    {
    }

    /** How many are open. */
    public function connections(): int
    {
    }

    /**
     * The clients by id of the connection: address (null on a Unix socket), whether it has TLS, and of its calls of gRPC how
     * many were started, have succeeded and have failed, and when the last was started, in seconds since 1970.
     *
     * @return array<int, array{?string, bool, int, int, int, ?float}>
     */
    public function peers(): array
    {
    }

    /** How many requests have arrived and are not answered, those that wait for their turn included. */
    public function inFlight(): int
    {
    }
}

/** The synchronous part of a request. Created only by the extension, as a `Weft\Http\Request`. */
class HttpRequest
{
    /** Unique in its server. */
    public function id(): int
    {
    }

    /** `GET`, `POST`, …, as it was sent. */
    public function method(): string
    {
    }

    /**
     * Method and path, separated by a space: `GET /people`.
     *
     * @internal
     */
    public function endpoint(): string
    {
    }

    /** The path of the target as it was sent, percent-encoded; it begins with `/`, or is `*`. */
    public function path(): string
    {
    }

    /** The query string of the target; empty if there is none. */
    public function queryString(): string
    {
    }

    /** `http` or `https`: of the connection, or as a trusted proxy says ({@see \Weft\Http\TrustedProxies}). */
    public function scheme(): string
    {
    }

    /** Host and port the client asked for: as it was sent (the authority of the target, or `host`), or as a trusted proxy says. */
    public function host(): string
    {
    }

    /** `1.0`, `1.1` or `2` */
    public function protocol(): string
    {
    }

    /** IP address of the other end of the connection, or of the client of a trusted proxy; null on a Unix socket. */
    public function clientAddress(): ?string
    {
    }

    /** The certificate the client has shown and proved to hold, in DER. */
    public function clientCertificate(): mixed
    {
    }

    /** Null on a Unix socket, and where a trusted proxy names no port. */
    public function clientPort(): ?int
    {
    }

    /** Its handler has ended: another request may be handled. Without it that is so once this object is gone. */
    public function handled(): void
    {
    }

    /** The value of a header field, null when there is none; several of a name are joined by `, ` (cookies by `; `). */
    public function header(string $name): mixed
    {
    }

    /** @return array<string, list<string>> names in lower case */
    public function headers(): array
    {
    }

    /** @return array<string, list<string>> what followed the body, once that has been read */
    public function trailers(): array
    {
    }

    /**
     * Records the time from the arrival of its header to its answer, in a process that is measured.
     *
     * @internal
     */
    public function timedBy(Histogram $histogram): void
    {
    }

    /** Whether the client still waits for the response. */
    public function isOpen(): bool
    {
    }

    /**
     * Whether the response, or its end, may wait for its connection to write it, which takes a turn of the loop.
     *
     * @internal
     */
    public function isQueued(): bool
    {
    }

    /**
     * The whole body as a string when it is here, otherwise an operation with that outcome.
     *
     * @internal
     */
    public function readBody(): mixed
    {
    }

    /**
     * Outcome: the next chunk of the body, empty at its end.
     *
     * @internal
     */
    public function nextChunk(): int
    {
    }

    /**
     * Answers. False when it was answered before or the client has gone away: then nothing is sent.
     *
     * @internal
     *
     * @param array<string, string|int|list<string>> $headers
     */
    public function respond(int $status, array $headers, string $body): bool
    {
    }

    /**
     * `respond()` and `handled()` in one call.
     *
     * @internal
     *
     * @param array<string, string|int|list<string>> $headers
     */
    public function finish(int $status, array $headers, string $body): void
    {
    }

    /**
     * Answers with a file, or with what its conditions and ranges make of it. As `respond()`.
     *
     * @internal
     *
     * @param array<string, string|int|list<string>> $headers in place of those the file has
     */
    public function respondFile(int $status, array $headers, HttpFile $file): bool
    {
    }

    /**
     * Reads a body of multipart/form-data. Outcome: a list of `[string name, string|HttpUpload|null value]`; null is a file field without a chosen file.
     *
     * @internal
     *
     * @param array<string, int|string> $limits the properties of `Weft\Http\FormLimits`
     */
    public function readForm(array $limits, string $directory): int
    {
    }

    /**
     * Accepts a WebSocket handshake: the connection, or the stream of HTTP/2, becomes a WebSocket; null if the client has disconnected.
     *
     * @internal
     *
     * @param string|null $subprotocol one that the client has offered
     * @param float $ping_interval in seconds, 0 is never
     * @param bool $compress messages, where the client can (RFC 7692)
     *
     * @throws \Weft\Http\HttpException the request asks for none, or not as RFC 6455 §4.2.1 or RFC 8441 §5 has it
     */
    public function acceptWebSocket(?string $subprotocol, int $message_bytes, float $ping_interval, bool $compress): ?HttpSocket
    {
    }

    /**
     * Answers with a body that is written afterwards.
     *
     * @internal
     *
     * @param array<string, string|int|list<string>> $headers
     * @param int|null $length of the whole body, where it is known
     */
    public function stream(int $status, array $headers, ?int $length = null): HttpStream
    {
    }

    /**
     * Answers with events that are written afterwards, until the server stops.
     *
     * @internal
     *
     * @param array<string, string|int|list<string>> $headers
     * @param float $heartbeat seconds without an event after which a comment is sent; 0 is never
     */
    public function streamEvents(int $status, array $headers, float $heartbeat): HttpStream
    {
    }
}

/** A file that is open for sending. */
final class HttpFile
{
    /**
     * @throws \Weft\Http\NotFoundException it is not there, or no file
     * @throws \Weft\Http\UnreadableFileException
     */
    public static function open(string $path): HttpFile
    {
    }

    /** Bytes. */
    public function size(): int
    {
    }

    /** By the end of its name. */
    public function mediaType(): string
    {
    }
}

/** The files of a directory. */
final class HttpStaticDir
{
    /** @throws \Error there is no such directory */
    public static function open(string $path, bool $shows_hidden): HttpStaticDir
    {
    }

    /**
     * An HttpFile, true where it is a directory, null where it is nothing that may be seen.
     *
     * @param string $path within the directory, decoded
     * @param string $accept the codings the client takes
     *
     * @throws \Weft\Http\UnreadableFileException
     */
    public function find(string $path, string $accept): mixed
    {
    }
}

/** A file of a form, deleted with this object unless it was moved. */
final class HttpUpload
{
    public function path(): string
    {
    }

    /** Bytes. */
    public function size(): int
    {
    }

    /** As the client sends it: any bytes. */
    public function fileName(): string
    {
    }

    public function contentType(): mixed
    {
    }

    /** Outcome: null, once it is there. */
    public function moveTo(string $path): int
    {
    }
}

/** Compresses one body. */
final class HttpEncoder
{
    /** @param string $coding `gzip`, `br` or `zstd` */
    public static function open(string $coding): HttpEncoder
    {
    }

    /**
     * The coding that suits an Accept-Encoding field best; null is none.
     *
     * @param list<string> $codings the first is the one to have where the client does not care
     */
    public static function choose(string $accept, array $codings): ?string
    {
    }

    /** Whether contents of that type become smaller. */
    public static function suits(string $content_type): bool
    {
    }

    /** The whole body, or for a large one an operation with that outcome. */
    public static function compress(string $coding, string $body): mixed
    {
    }

    /** The compressed chunk, flushed: with all earlier output the client can decompress it to its end. */
    public function write(string $chunk): string
    {
    }

    /** The end of the compressed body. */
    public function finish(): string
    {
    }
}

/** A WebSocket. Dropped before it was closed, it is closed with 1001. */
final class HttpSocket
{
    /** Outcome: `[string data, bool is binary]`, or null once the WebSocket is closed and everything that arrived before was received. */
    public function receive(): int
    {
    }

    /**
     * Takes the message in any case. 0, or an operation to wait for before the next one, with the outcome null.
     *
     * @throws \Weft\Http\ClientDisconnectedException
     * @throws \Error a text that is not UTF-8
     */
    public function send(string $message, bool $is_binary): int
    {
    }

    /** Sends what is waiting, then a Close frame (RFC 6455 §5.5.1). Only the first call has an effect. */
    public function close(int $code, string $reason): void
    {
    }

    /** Null while it goes on. */
    public function closeCode(): ?int
    {
    }

    public function closeReason(): string
    {
    }
}

/** The body of a response on its way. Dropped before `end()` it breaks the response off. */
final class HttpStream
{
    /**
     * Takes the bytes in any case. 0, or an operation to wait for before the next chunk, with the outcome null.
     *
     * @throws \Weft\Http\ClientDisconnectedException
     */
    public function write(string $bytes): int
    {
    }

    /** @param array<string, string|list<string>> $trailers */
    public function end(array $trailers): void
    {
    }

    /** Breaks the response off, unless it has ended. */
    public function abort(): void
    {
    }
}
