<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\SpanName;
use Weft\Runtime\Internal\TraceSource;

/**
 * A span of a distributed trace (W3C Trace Context), such as the handling of a request or of a message.
 *
 * The bus and the HTTP server set the current one for each handler. Tasks that the handler starts inherit it, messages that it sends
 * continue it, and the logger that it is given records it. For calls to other services, pass {@see headers()}.
 *
 * ```php
 * $client->request('GET', $url, ['headers' => Trace::current()?->headers() ?? []]);
 * ```
 */
final class Trace
{
    /** Bytes of a trace state that is passed on. W3C requires at least 512 (§3.3.1.5). */
    private const STATE_BYTES = 4_096;

    /** The current span outside of tasks. */
    private static self|TraceSource|null $outside = null;

    /**
     * @param string      $traceparent names this span (§3.2), as version 00
     * @param string|null $tracestate  of the caller (§3.3), unchanged
     */
    private function __construct(
        public readonly string $traceparent,
        public readonly ?string $tracestate = null,
    ) {}

    /** The span of the current task; null outside of handlers. */
    public static function current(): ?self
    {
        $current = self::entered();

        return $current instanceof TraceSource ? $current->trace() : $current;
    }

    /**
     * Starts a span: a child of the caller's, or the first of a new trace if `$traceparent` is null or malformed.
     *
     * @param string|null $tracestate ignored without a valid `$traceparent` (§3.3), beyond 4,096 bytes, or if it is not printable ASCII
     */
    public static function continue(?string $traceparent, ?string $tracestate = null): self
    {
        $traceparent = self::printable($traceparent);
        $own = SpanName::childOf($traceparent);
        $isChild = $traceparent !== null && \substr($own, 3, 32) === \substr($traceparent, 3, 32);

        return new self($own, $isChild && \strlen($tracestate ?? '') <= self::STATE_BYTES ? self::printable($tracestate) : null);
    }

    /** Both fields are printable ASCII (§3.2.2, §3.3.1.3), and gRPC sends no other metadata. */
    private static function printable(?string $field): ?string
    {
        return $field !== null && \preg_match('/^[\x20-\x7E]+$/D', $field) === 1 ? $field : null;
    }

    /** @internal a span that has a name already: a valid `traceparent` of version 00 */
    public static function named(string $traceparent): self
    {
        return new self($traceparent);
    }

    /** Starts a span below this one. */
    public function child(): self
    {
        return self::continue($this->traceparent, $this->tracestate);
    }

    /**
     * Runs `$work` with this span as the current one.
     *
     * @template R
     *
     * @param callable(): R $work
     *
     * @return R
     */
    public function run(callable $work): mixed
    {
        $before = self::entered();
        self::enter($this);
        try {
            return $work();
        } finally {
            self::enter($before);
        }
    }

    /** 32 hexadecimal digits, the same for everything that one request leads to. */
    public function traceId(): string
    {
        return \substr($this->traceparent, 3, 32);
    }

    /** 16 hexadecimal digits. */
    public function spanId(): string
    {
        return \substr($this->traceparent, 36, 16);
    }

    /** Whether the caller records the trace (§3.2.2.5.1). */
    public function isSampled(): bool
    {
        return ((int) \hexdec(\substr($this->traceparent, 53, 2)) & 1) === 1;
    }

    /** @return array<string, string> `traceparent` and, if there is one, `tracestate`: for requests and messages sent in this span */
    public function headers(): array
    {
        return ['traceparent' => $this->traceparent] + ($this->tracestate === null ? [] : ['tracestate' => $this->tracestate]);
    }

    /** @internal sets the span of the current task; a source makes it when it is first needed */
    public static function enter(self|TraceSource|null $current): void
    {
        $task = Scheduler::task();
        if ($task === null) {
            self::$outside = $current;
        } else {
            $task->trace = $current;
        }
    }

    private static function entered(): self|TraceSource|null
    {
        $task = Scheduler::context();

        return $task === null ? self::$outside : $task->trace;
    }
}
