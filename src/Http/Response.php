<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\EventBody;
use Weft\Http\Internal\FileBody;
use Weft\Http\Internal\FileName;
use Weft\Native\HttpFile;

/**
 * An answer. Immutable; `with…()` return changed copies.
 */
final class Response
{
    private const TEXT = ['content-type' => 'text/plain; charset=utf-8'];
    private const JSON = ['content-type' => 'application/json'];

    /** @var array<string, string|int|list<string>> names in lower case */
    public readonly array $headers;

    /**
     * @param int $status 200 to 999
     * @param array<string, string|int|list<string>> $headers a list is sent as several fields; Content-Length is set by itself
     * @param string|iterable<string>|\Closure(BodyWriter): void|Internal\Body $body a string, or chunks, or a function that
     *     writes them while they are sent; both wait while the client takes no more
     */
    public function __construct(
        public readonly int $status = 200,
        array $headers = [],
        public readonly string|iterable|\Closure|Internal\Body $body = '',
    ) {
        // Changing a copy would take a twentieth of the time of a short answer.
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

    /** @throws \JsonException `$data` cannot be written as JSON */
    public static function json(mixed $data, int $status = 200): self
    {
        $flags = \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION;

        return new self($status, self::JSON, \json_encode($data, $flags));
    }

    /** @param int $status 302 unless the method may change (303) or must not (307, 308) or the move is for good (301, 308) */
    public static function redirect(string $location, int $status = 302): self
    {
        return new self($status, ['location' => $location]);
    }

    /** 201, with where the new resource is. */
    public static function created(string $location, string $body = ''): self
    {
        return new self(201, ['location' => $location], $body);
    }

    /** 202: taken, not done yet. */
    public static function accepted(string $body = ''): self
    {
        return new self(202, [], $body);
    }

    /** 204 */
    public static function noContent(): self
    {
        return new self(204);
    }

    /** 404 */
    public static function notFound(string $text = "404 Not Found\n"): self
    {
        return self::text($text, 404);
    }

    /**
     * @param iterable<string>|\Closure(BodyWriter): void $body
     * @param array<string, string|int|list<string>> $headers
     */
    public static function stream(iterable|\Closure $body, string $contentType = 'application/octet-stream', int $status = 200, array $headers = []): self
    {
        return new self($status, ['content-type' => $contentType] + $headers, $body);
    }

    /**
     * A file, opened now and read while it is sent. With the status 200, conditions (`If-None-Match`, `If-Modified-Since`,
     * `If-Match`, `If-Unmodified-Since`) and ranges of the request are answered 304, 412, 206 or 416 (RFC 9110 §13, §14);
     * `etag` and `last-modified` are those of the file unless `withHeader()` sets them.
     *
     * @param string|null $contentType by default what the end of its name says
     * @param string|null $download the name under which the client is to save it, rather than to show it
     *
     * @throws NotFoundException it is not there, or no file
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
     * Events for a page's `EventSource`, sent as they come. The stream ends with them, when the client goes away (which
     * cancels the task that makes them), or when the server stops: the client then connects again, and says with
     * `$request->header('last-event-id')` what it has seen.
     *
     * @param iterable<string|ServerSentEvent>|\Closure(EventWriter): mixed $events a text is an event with that data; a function
     *     sends them, or returns them
     * @param float $heartbeat seconds of silence after which a comment is sent, so that nothing between here and there takes
     *     the connection for dead; 0 is never
     */
    public static function events(iterable|\Closure $events, float $heartbeat = 15.0): self
    {
        if (!($heartbeat >= 0.0)) {
            throw new \ValueError("A heartbeat comes after 0 seconds at least, got $heartbeat");
        }
        // The last one is for nginx, which would keep events until it has a buffer full of them.
        $headers = ['content-type' => 'text/event-stream', 'cache-control' => 'no-store', 'x-accel-buffering' => 'no'];

        return new self(200, $headers, new EventBody($events, $heartbeat));
    }

    public function withStatus(int $status): self
    {
        return new self($status, $this->headers, $this->body);
    }

    /** @param string|int|list<string> $value in place of what the field was */
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
