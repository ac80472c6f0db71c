<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

/** An encoded message: its type name, its body and its headers. */
final class Envelope
{
    /**
     * @param string                $body    any bytes
     * @param array<string, string> $headers those of the bus are in {@see \Weft\Bus\Header}
     */
    public function __construct(
        public readonly string $type,
        public readonly string $body = '',
        public readonly array $headers = [],
    ) {}

    public function header(string $name): ?string
    {
        return $this->headers[$name] ?? null;
    }

    /**
     * A copy with other parts.
     *
     * @param array<string, string|null> $headers added or replaced; null removes one
     */
    public function with(?string $type = null, ?string $body = null, array $headers = []): self
    {
        $kept = \array_diff_key($this->headers, $headers);

        return new self($type ?? $this->type, $body ?? $this->body, $kept + \array_filter($headers, static fn(?string $value): bool => $value !== null));
    }
}
