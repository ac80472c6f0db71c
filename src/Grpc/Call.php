<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Native;
use Weft\Native\GrpcCall;

/**
 * The context of a call: metadata, deadline, peer, and the metadata of the response.
 *
 * The task of the handler is cancelled when the client cancels the call or disconnects, or when the deadline passes.
 */
final class Call extends GrpcCall
{
    /**
     * @internal
     *
     * @var array<string, string|list<string>>
     */
    public array $trailers = [];
    /** @var array<string, mixed> */
    private array $attributes = [];
    private ?string $traceparent = null;

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
     * The W3C `traceparent` for the calls of this handler: a new span in the trace of the call, or in a new trace if the call has
     * none.
     */
    public function traceparent(): string
    {
        return $this->traceparent ??= Native\traceparent($this->value('traceparent'));
    }

    /** The trace id, 32 hexadecimal digits. */
    public function traceId(): string
    {
        return \substr($this->traceparent(), 3, 32);
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
