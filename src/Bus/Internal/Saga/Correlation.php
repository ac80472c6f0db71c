<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Saga\SagaNotCorrelatedException;

/**
 * Reads the correlation value of a message.
 *
 * @internal
 */
final class Correlation
{
    public const MAX_BYTES = 200;

    /** @param string $name of the property or header, under which values can be associated with sagas as well */
    private function __construct(
        public readonly string $name,
        private readonly \Closure $read,
    ) {}

    /** @param class-string $message has the property, of any visibility */
    public static function byProperty(string $message, string $property): self
    {
        $declaring = (new \ReflectionProperty($message, $property))->class;
        $read = \Closure::bind(static fn(object $message): mixed => $message->$property ?? null, null, $declaring);

        return new self($property, static fn(object $message, array $headers): mixed => $read($message));
    }

    public static function byHeader(string $header): self
    {
        return new self($header, $header === Header::CORRELATION_ID
            ? static fn(object $message, array $headers): ?string => $headers[$header] ?? $headers[Header::MESSAGE_ID] ?? null
            : static fn(object $message, array $headers): ?string => $headers[$header] ?? null);
    }

    /** @throws SagaNotCorrelatedException */
    public function of(object $message, Context $context): string
    {
        return $this->key($message, $context->headers())
            ?? throw new SagaNotCorrelatedException("{$this->name} of " . $message::class . " {$context->messageId()} identifies the saga for {$context->handler()}() and must be a string of 1 to " . self::MAX_BYTES . ' bytes or an integer');
    }

    /**
     * The same before the message is decoded for a handler.
     *
     * @param array<string, string> $headers
     */
    public function key(object $message, array $headers): ?string
    {
        return self::text(($this->read)($message, $headers));
    }

    /** The value as it is stored; null if it is invalid. */
    public static function text(mixed $value): ?string
    {
        $value = match (true) {
            $value instanceof \BackedEnum => (string) $value->value,
            \is_int($value), $value instanceof \Stringable => (string) $value,
            default => $value,
        };

        return \is_string($value) && $value !== '' && \strlen($value) <= self::MAX_BYTES && \preg_match('//u', $value) === 1 && !\str_contains($value, "\0") ? $value : null;
    }
}
