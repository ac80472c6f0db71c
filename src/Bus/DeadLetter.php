<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A message that could not be handled, with its original body and the error. */
final class DeadLetter
{
    /**
     * @param string                $body    the original bytes
     * @param array<string, string> $headers the original headers and those that {@see Header} lists for dead letters
     */
    public function __construct(
        public readonly string $type,
        public readonly string $body,
        public readonly array $headers,
    ) {}

    public function messageId(): string
    {
        return $this->headers[Header::MESSAGE_ID] ?? '';
    }

    public function errorClass(): string
    {
        return $this->headers[Header::ERROR_CLASS] ?? '';
    }

    public function errorMessage(): string
    {
        return $this->headers[Header::ERROR_MESSAGE] ?? '';
    }

    /** @return list<string> as `Class::method`; empty when no handler was called */
    public function failedHandlers(): array
    {
        return \array_values(\array_filter(\explode(', ', $this->headers[Header::FAILED_HANDLER] ?? '')));
    }

    public function attempts(): int
    {
        return (int) ($this->headers[Header::ATTEMPTS] ?? 0);
    }
}
