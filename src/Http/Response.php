<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\EventBody;
use Weft\Http\Internal\FileBody;
use Weft\Http\Internal\FileName;
use Weft\Http\Internal\Handlers\JsonFault;
use Weft\Internal\Number;
use Weft\Native\HttpFile;

/**
 * A response. Immutable: `with…()` methods return changed copies.
 *
 * ```
 * return Response::json(['id' => 7], 201)->withHeader('location', '/people/7');
 * ```
 */
final class Response
{
    private const TEXT = ['content-type' => 'text/plain; charset=utf-8'];
    private const JSON = ['content-type' => 'application/json'];

    /** @var array<string, string|int|list<string>> names in lower case */
    public readonly array $headers;

    /**
     * @param int $status status of the response, 200 to 999
     * @param array<string, string|int|list<string>> $headers a list is sent as several fields; the server sets Content-Length
     * @param string|iterable<string>|\Closure(BodyWriter): mixed|Internal\Body $body a string, or chunks, or a function that
     *     writes them; both wait while the client does not read
     */
    public function __construct(
        public readonly int $status = 200,
        array $headers = [],
        public readonly string|iterable|\Closure|Internal\Body $body = '',
    ) {
        // Changing a clone would take 5 % of the time of a short response.
        $this->headers = $headers === self::TEXT || $headers === self::JSON ? $headers : \array_change_key_case($headers);
    }

    public static function text(string $text, int $status = 200): self
    {
        return new self($status, self::TEXT, $text);
    }

    public static function html(string $html, int $status = 200): self
    {
        return new self($status, ['content-type' => 'text/html; charset=utf-8'], $html);
    }

    /** @throws \JsonException `$data` cannot be written as JSON; the message names the place of the value that cannot: `$.people[3].name` */
    public static function json(mixed $data, int $status = 200): self
    {
        $flags = \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION;
        try {
            $json = \json_encode($data, $flags);
        } catch (\JsonException $fault) {
            throw JsonFault::located($fault, $data);
        }

        return new self($status, self::JSON, $json);
    }

    /** @param int $status 302, 303 (changes the method to GET), 307 (keeps the method), 301 or 308 (permanent) */
    public static function redirect(string $location, int $status = 302): self
    {
        return new self($status, ['location' => $location]);
    }

    /** 201 Created, with the location of the new resource. */
    public static function created(string $location, string $body = ''): self
    {
        return new self(201, ['location' => $location], $body);
    }

    /** 202 Accepted: the request will be processed later. */
    public static function accepted(string $body = ''): self
    {
        return new self(202, [], $body);
    }

    /** 204 No Content. */
    public static function noContent(): self
    {
        return new self(204);
    }

    /** 404 Not Found. */
    public static function notFound(string $text = "404 Not Found\n"): self
    {
        return self::text($text, 404);
    }

    /**
     * @param iterable<string>|\Closure(BodyWriter): mixed $body a function writes the chunks or returns them, as a generator does
     * @param array<string, string|int|list<string>> $headers
     */
    public static function stream(iterable|\Closure $body, string $contentType = 'application/octet-stream', int $status = 200, array $headers = []): self
    {
        return new self($status, \array_change_key_case($headers) + ['content-type' => $contentType], $body);
    }

    /**
     * A file, opened now and read while it is sent. With status 200, conditions (`If-None-Match`, `If-Modified-Since`,
     * `If-Match`, `If-Unmodified-Since`) and ranges of the request are answered 304, 412, 206 or 416 (RFC 9110 §13, §14);
     * `etag` and `last-modified` are those of the file unless `withHeader()` sets them.
     *
     * @param string|null $contentType by default derived from the file extension
     * @param string|null $download makes the client save the file under this name instead of showing it
     *
     * @throws NotFoundException the path does not exist, or is no regular file
     * @throws UnreadableFileException
     */
    public static function file(string $path, ?string $contentType = null, ?string $download = null): self
    {
        $headers = $contentType === null ? [] : ['content-type' => $contentType];
        if ($download !== null) {
            $headers['content-disposition'] = FileName::attachment($download);
        }

        return new self(200, $headers, new FileBody(HttpFile::open($path)));
    }

    /**
     * A stream of server-sent events for `EventSource`. The stream ends with the events, when the client disconnects (which cancels the
     * task that makes them), or when the server stops. A client that reconnects sends the id of the last event it has received, see
     * `$request->header('last-event-id')`.
     *
     * @param iterable<string|ServerSentEvent>|\Closure(EventWriter): mixed $events a string is the data of an event; a function
     *     sends the events or returns them
     * @param float $heartbeat seconds without an event after which a comment is sent, so that no proxy closes the
     *     idle connection; 0 disables it
     */
    public static function events(iterable|\Closure $events, float $heartbeat = 15.0): self
    {
        if (!($heartbeat >= 0.0)) {
            throw new \ValueError('heartbeat must be at least 0 seconds, got ' . Number::text($heartbeat));
        }
        // The last field keeps nginx from buffering events.
        $headers = ['content-type' => 'text/event-stream', 'cache-control' => 'no-store', 'x-accel-buffering' => 'no'];

        return new self(200, $headers, new EventBody($events, $heartbeat));
    }

    public function withStatus(int $status): self
    {
        return new self($status, $this->headers, $this->body);
    }

    /** @param string|int|list<string> $value replaces the field */
    public function withHeader(string $name, string|int|array $value): self
    {
        return new self($this->status, [\strtolower($name) => $value] + $this->headers, $this->body);
    }

    /** Adds a Set-Cookie field. */
    public function withCookie(Cookie $cookie): self
    {
        $cookies = [...\array_map(\strval(...), \array_values((array) ($this->headers['set-cookie'] ?? []))), (string) $cookie];

        return $this->withHeader('set-cookie', $cookies);
    }

    public function header(string $name): ?string
    {
        $value = $this->headers[\strtolower($name)] ?? null;

        return $value === null ? null : \implode(', ', (array) $value);
    }
}
