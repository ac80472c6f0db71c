<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Sql\Bytes;
use Weft\Sql\ParameterError;

/**
 * The conversions of values that need PHP. Called by the extension for everything that is not a scalar or a list.
 *
 * @internal
 */
final class Parameter
{
    /**
     * @return array{'json'|'timestamp'|'bytes'|'text', string}
     *
     * @throws ParameterError
     */
    public static function encode(mixed $value): array
    {
        return match (true) {
            $value instanceof Bytes => ['bytes', $value->bytes],
            $value instanceof \DateTimeInterface => ['timestamp', $value->format('Y-m-d\TH:i:s.uP')],
            $value instanceof \BackedEnum => ['text', (string) $value->value],
            \is_array($value), $value instanceof \JsonSerializable, $value instanceof \stdClass => ['json', self::document($value)],
            $value instanceof \Stringable => ['text', (string) $value],
            default => throw new ParameterError('A parameter of type ' . \get_debug_type($value) . ' cannot be sent to a database'),
        };
    }

    /** @return mixed arrays for objects, as everywhere in rows */
    public static function json(string $document): mixed
    {
        return \json_decode($document, true, flags: \JSON_THROW_ON_ERROR | \JSON_BIGINT_AS_STRING);
    }

    /** Text that PHP cannot represent as a date, such as `infinity`, stays text. */
    public static function timestamp(string $text): \DateTimeImmutable|string
    {
        return \date_create_immutable($text) ?: $text;
    }

    private static function document(mixed $value): string
    {
        try {
            return \json_encode($value, \JSON_THROW_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE);
        } catch (\JsonException $cause) {
            throw new ParameterError('A parameter cannot be encoded as JSON: ' . $cause->getMessage(), previous: $cause);
        }
    }
}
