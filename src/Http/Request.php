<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\Form;
use Weft\Http\Internal\JsonBody;
use Weft\Native\HttpRequest;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\TraceSource;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\Mutex;
use Weft\Runtime\Trace;

/**
 * An HTTP request.
 *
 * Values are parsed on demand. The native base class has `method()`, `path()`, `header()`, `headers()`, `host()`, `scheme()`,
 * `clientAddress()` and more.
 *
 * ```
 * fn (Request $request) => Response::json(['you' => $request->clientAddress(), 'page' => $request->queryParameter('page')]);
 * ```
 */
final class Request extends HttpRequest implements TraceSource
{
    /** @var array<string, string> the decoded path parameters of the route */
    public array $parameters = [];
    /** The path of the matched route if it has parameters, such as `/people/{id}`; otherwise null. */
    public ?string $route = null;
    /** @internal failures become problem details, regardless of the client's `accept` */
    public bool $answersProblems = false;
    /** @var array<string, mixed> */
    private array $attributes = [];
    /** @var array<array-key, mixed>|null */
    private ?array $query = null;
    /** @var array<string, string>|null */
    private ?array $cookies = null;
    private ?Form $form = null;
    /** Held by the task that reads a large body, while others wait for it. */
    private ?Mutex $reading = null;
    private ?Trace $trace = null;
    /**
     * The callbacks of `afterResponse()`.
     *
     * @internal
     *
     * @var list<\Closure(): void>
     */
    public array $afterResponse = [];
    private ?Session $session = null;
    /** @internal null for a server that cancels no handler whose client has left */
    public ?Internal\WebSocketWatch $webSocketWatch = null;
    /**
     * @internal {@see Internal\ServerParameters}
     *
     * @var array<string, string|int|float>|null
     */
    public ?array $serverParameters = null;

    /** The value of a query parameter; the last one of several. Null if there is none, or if it is an array (`a[]=1`). */
    public function queryParameter(string $name): ?string
    {
        $value = $this->queryParameters()[$name] ?? null;

        return \is_string($value) ? $value : null;
    }

    /**
     * @return array<array-key, mixed> all query parameters, as `parse_str()` reads them
     *
     * @throws PayloadTooLargeException there are more than `max_input_vars`, or one is nested deeper than `max_input_nesting_level`
     */
    public function queryParameters(): array
    {
        if ($this->query === null) {
            $this->query = Form::values($this->queryString(), 'query');
        }

        return $this->query;
    }

    /**
     * @return array<string, list<string>> names in lower case. Several fields with cookies, into which HTTP/2 may split one, are one
     *     (RFC 9113 §8.2.3).
     */
    public function headers(): array
    {
        $headers = parent::headers();
        if (isset($headers['cookie'][1])) {
            $headers['cookie'] = [\implode('; ', $headers['cookie'])];
        }

        return $headers;
    }

    public function cookie(string $name): ?string
    {
        return $this->cookies()[$name] ?? null;
    }

    /** @return array<string, string> percent-decoded values; the first one of several with the same name (RFC 6265 §5.4) */
    public function cookies(): array
    {
        return $this->cookies ??= Internal\Cookies::parse($this->header('cookie') ?? '');
    }

    /**
     * The whole body. Waits until a large body has arrived. May be called any number of times.
     *
     * @throws PayloadTooLargeException it has more bytes than `BodyLimits::$bytes`
     * @throws BodyTimeoutException the client stopped sending
     * @throws ClientDisconnectedException
     */
    #[WaitsFor('the body of an HTTP request')]
    public function body(): string
    {
        $body = $this->reading === null ? $this->readBody() : null;
        if (\is_string($body)) {
            return $body;
        }

        return ($this->reading ??= new Mutex())->synchronized(function () use ($body): string {
            $body ??= $this->readBody();

            return \is_int($body) ? Scheduler::await($body) : $body;
        });
    }

    /**
     * The body as it arrives, in chunks of at least one byte. Reading slowly slows the client down.
     *
     * @return \Generator<int, string>
     *
     * @throws PayloadTooLargeException
     * @throws BodyTimeoutException
     * @throws ClientDisconnectedException
     */
    #[WaitsFor('the body of an HTTP request')]
    public function chunks(): \Generator
    {
        /** @var string $chunk */
        while (($chunk = Scheduler::await($this->nextChunk())) !== '') {
            yield $chunk;
        }
    }

    /**
     * The body decoded from JSON, objects as arrays; integers that PHP cannot hold become strings. Throws as `body()` does, too.
     *
     * @throws BadRequestException the body is not valid JSON
     * @throws PayloadTooLargeException its values would take more memory than 16 MiB and 32 times the size of the body
     */
    public function json(): mixed
    {
        try {
            $body = $this->body();
            $body !== '' || throw new BadRequestException('The body is empty; expected JSON');

            return \json_decode(JsonBody::checked($body), true, 512, \JSON_THROW_ON_ERROR | \JSON_BIGINT_AS_STRING);
        } catch (\JsonException $error) {
            throw new BadRequestException("The body is not valid JSON: {$error->getMessage()}", previous: $error);
        }
    }

    /**
     * The values of a form (`application/x-www-form-urlencoded` or `multipart/form-data`), as `parse_str()` reads them. A
     * multipart form is read as it arrives, its files are stored on disk, and `body()` is empty afterwards.
     *
     * @param FormLimits|null $limits for a multipart form; only the first call uses it
     *
     * @return array<array-key, mixed>
     *
     * @throws BadRequestException it is malformed
     * @throws HttpException 415: the body has another content type
     * @throws PayloadTooLargeException it exceeds the limits
     * @throws UploadException a file cannot be kept
     * @throws BodyTimeoutException
     * @throws ClientDisconnectedException
     */
    public function form(?FormLimits $limits = null): array
    {
        return $this->parsedForm($limits)->values;
    }

    /**
     * An uploaded file; the last one of several in that field. Null if none was chosen. Throws as `form()` does.
     *
     * @param FormLimits|null $limits only the first call uses it
     */
    public function upload(string $field, ?FormLimits $limits = null): ?Upload
    {
        foreach (\array_reverse($this->uploads($limits)) as $upload) {
            if ($upload->field === $field) {
                return $upload;
            }
        }

        return null;
    }

    /**
     * All uploaded files in their order. Throws as `form()` does.
     *
     * @param FormLimits|null $limits only the first call uses it
     *
     * @return list<Upload>
     */
    public function uploads(?FormLimits $limits = null): array
    {
        return $this->parsedForm($limits)->uploads;
    }

    /**
     * The span of this request: in the trace of its `traceparent` field (W3C Trace Context), or in a new one. It is the current one of the
     * handler, so that messages the handler sends and records it logs continue the trace.
     */
    public function trace(): Trace
    {
        return $this->trace ??= Trace::continue($this->header('traceparent'), $this->header('tracestate'));
    }

    /** @internal */
    public function parsedForm(?FormLimits $limits = null): Form
    {
        $read = fn(): Form => $this->form ??= Form::read($this, $limits ?? new FormLimits());

        return $this->form ?? (Form::isMultipart($this) ? ($this->reading ??= new Mutex())->synchronized($read) : $read());
    }

    /**
     * Runs a function in the request's task once the response has been handed to the connection. Its exceptions are logged.
     *
     * @internal
     *
     * @param \Closure(): void $work
     */
    public function afterResponse(\Closure $work): void
    {
        $this->afterResponse[] = $work;
    }

    /**
     * The session of the browser.
     *
     * @throws \Error the route is not inside the middleware {@see Sessions}
     */
    public function session(): Session
    {
        return $this->session ?? throw new \Error('The request has no session: add the middleware Weft\Http\Sessions to its routes');
    }

    /** @internal */
    public function useSession(Session $session): void
    {
        $this->session = $session;
    }

    /** A value that a middleware has set for the handlers after it. */
    public function attribute(string $name, mixed $default = null): mixed
    {
        return $this->attributes[$name] ?? $default;
    }

    /** Passes a value to the middleware and the handler that come after this one. */
    public function setAttribute(string $name, mixed $value): static
    {
        $this->attributes[$name] = $value;

        return $this;
    }
}
