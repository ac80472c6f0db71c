<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Native\HttpRequest;
use Weft\Runtime\Internal\Scheduler;

/**
 * A request, from its arrival to its answer.
 *
 * Everything is read from the connection's own bytes when it is asked for. The extension's half, which this one inherits,
 * has `method()`, `path()`, `header()`, `headers()`, `host()`, `scheme()`, `clientAddress()` and the like.
 */
final class Request extends HttpRequest
{
    /** @var array<string, string> what the route's `{names}` stood for, decoded */
    public array $parameters = [];
    /** The path of its route where that has names, such as `/people/{id}`; otherwise that is `path()`. */
    public ?string $route = null;
    /** @var array<string, mixed> */
    private array $attributes = [];
    /** @var array<array-key, mixed>|null */
    private ?array $query = null;
    /** @var array<string, string>|null */
    private ?array $cookies = null;

    /** The value of a query parameter; of several the last. Null when there is none, or it is an array (`a[]=1`). */
    public function query(string $name): ?string
    {
        $value = $this->queries()[$name] ?? null;

        return \is_string($value) ? $value : null;
    }

    /** @return array<array-key, mixed> all query parameters, as `parse_str()` reads them */
    public function queries(): array
    {
        if ($this->query === null) {
            \parse_str($this->queryString(), $this->query);
        }

        return $this->query;
    }

    public function cookie(string $name): ?string
    {
        return $this->cookies()[$name] ?? null;
    }

    /** @return array<string, string> values percent-decoded; of several of one name the first (RFC 6265 §5.4) */
    public function cookies(): array
    {
        return $this->cookies ??= Internal\Cookies::parse($this->header('cookie') ?? '');
    }

    /**
     * The whole body. Small ones are here already; otherwise the task waits. It can be asked for any number of times.
     *
     * @throws PayloadTooLarge it has more bytes than `Limits::$bodyBytes`
     * @throws BodyTimedOut the client stopped sending
     * @throws ClientGone
     */
    public function body(): string
    {
        $body = $this->readBody();

        return \is_int($body) ? Scheduler::await($body) : $body;
    }

    /**
     * The body as it arrives, a piece at a time, each of at least one byte. The client sends no faster than this is read.
     *
     * @return \Generator<int, string>
     *
     * @throws PayloadTooLarge
     * @throws BodyTimedOut
     * @throws ClientGone
     */
    public function pieces(): \Generator
    {
        while (($piece = Scheduler::await($this->nextPiece())) !== '') {
            yield $piece;
        }
    }

    /**
     * The body decoded from JSON, objects as arrays; integers that PHP cannot hold become strings.
     *
     * @throws BadRequest it is no JSON
     */
    public function json(): mixed
    {
        try {
            return \json_decode($this->body(), true, 512, \JSON_THROW_ON_ERROR | \JSON_BIGINT_AS_STRING);
        } catch (\JsonException $error) {
            throw new BadRequest("The body is no JSON: {$error->getMessage()}", previous: $error);
        }
    }

    /**
     * The fields of a form (`application/x-www-form-urlencoded`), as `parse_str()` reads them.
     *
     * @return array<array-key, mixed>
     */
    public function form(): array
    {
        \parse_str($this->body(), $form);

        return $form;
    }

    /** What a middleware noted for those after it. */
    public function attribute(string $name, mixed $default = null): mixed
    {
        return $this->attributes[$name] ?? $default;
    }

    public function note(string $name, mixed $value): static
    {
        $this->attributes[$name] = $value;

        return $this;
    }
}
