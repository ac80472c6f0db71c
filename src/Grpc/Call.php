<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Native;
use Weft\Native\GrpcCall;

/**
 * What a handler can know and say beside the messages of its call.
 *
 * A client that cancels, goes away or whose deadline passes cancels the task of the handler, and with it what that waits for.
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

    /** The first value the client sent under that name, null when there is none. Values of names that end in `-bin` are bytes. */
    public function value(string $name): ?string
    {
        return $this->metadata()[$name][0] ?? null;
    }

    /**
     * Trailing metadata, sent with the status.
     *
     * @param string $name in lower case
     * @param string|list<string> $value printable ASCII, or bytes where the name ends in `-bin`
     */
    public function trailer(string $name, string|array $value): void
    {
        $this->trailers[$name] = $value;
    }

    /**
     * The W3C `traceparent` for what this handler calls: a new span of the trace the call came with, or of a new one where it came with
     * none.
     */
    public function traceparent(): string
    {
        return $this->traceparent ??= Native\traceparent($this->value('traceparent'));
    }

    /** 32 hexadecimal digits: the same in everything that belongs to what the client began. */
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
