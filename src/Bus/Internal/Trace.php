<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * The W3C trace context of one handling: the trace of the message that is handled, and a span of its own.
 *
 * @internal
 */
final class Trace
{
    private function __construct(
        public readonly string $traceId,
        public readonly string $spanId,
        private readonly string $flags,
    ) {}

    /** Continues what a traceparent header says; starts anew when it is absent or malformed (Trace Context §4.3). */
    public static function continue(?string $traceparent): self
    {
        $isValid = $traceparent !== null
            && \preg_match('/^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-([\da-f]{2})/', $traceparent, $part) === 1;

        return $isValid ? new self($part[1], Ids::span(), $part[2]) : new self(Ids::trace(), Ids::span(), '01');
    }

    /** What messages sent from here carry: their parent is this span. */
    public function traceparent(): string
    {
        return "00-{$this->traceId}-{$this->spanId}-{$this->flags}";
    }
}
