<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Native\GrpcCall;
use Weft\Runtime\Internal\TraceSource;
use Weft\Runtime\Trace;

/**
 * The context of a call: metadata, deadline, peer, and the metadata of the response.
 *
 * The task of the handler is cancelled when the client cancels the call or disconnects, or when the deadline passes.
 */
final class Call extends GrpcCall implements TraceSource
{
    /**
     * @internal
     *
     * @var array<string, string|list<string>>
     */
    public array $trailers = [];
    /** @var array<string, mixed> */
    private array $attributes = [];
    private ?Trace $trace = null;

    /** The first metadata value of that name, null if there is none. Values of names that end in `-bin` are bytes. */
    public function value(string $name): ?string
    {
        return $this->metadata()[$name][0] ?? null;
    }

    /**
     * Adds trailing metadata, which is sent with the status.
     *
     * @param string $name in lower case
     * @param string|list<string> $value printable ASCII, or bytes where the name ends in `-bin`
     */
    public function trailer(string $name, string|array $value): void
    {
        $this->trailers[$name] = $value;
    }

    /**
     * The span of this call: in the trace of the `traceparent` of its metadata (W3C Trace Context), or in a new one. It is the current one
     * of the handler: {@see Trace::current()}.
     */
    public function trace(): Trace
    {
        return $this->trace ??= Trace::continue($this->value('traceparent'), $this->value('tracestate'));
    }

    /**
     * The call as OpenTelemetry's semantic conventions name it, for spans and log records.
     *
     * @return array<string, string|int>
     */
    public function telemetry(): array
    {
        $parts = \explode('/', \substr($this->method(), 1), 2);
        $peer = (string) $this->peer();
        $colon = (int) \strrpos($peer, ':');

        return ['rpc.system' => 'grpc', 'rpc.service' => $parts[0], 'rpc.method' => $parts[1] ?? ''] + ($peer === '' ? [] : [
            'client.address' => \trim(\substr($peer, 0, $colon), '[]'),
            'client.port' => (int) \substr($peer, $colon + 1),
        ]);
    }

    /** A value that an interceptor has set for the handlers after it. */
    public function attribute(string $name, mixed $default = null): mixed
    {
        return $this->attributes[$name] ?? $default;
    }

    /** Passes a value to the interceptors and the handler that come after this one. */
    public function setAttribute(string $name, mixed $value): static
    {
        $this->attributes[$name] = $value;

        return $this;
    }
}
