<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Sql\Bytes;

/**
 * JSON documents. The values in a map become what {@see Parameter} makes of them as parameters or in a list, which json_encode() alone would not:
 * it writes the properties of a time or a Stringable.
 *
 * @internal
 */
final class Document
{
    private const FLAGS = \JSON_THROW_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE;

    /** Levels after which a document counts as one that contains itself. Above the 512 of json_encode(), which counts no jsonSerialize(). */
    private const DEEPEST = 1024;

    /** @throws \JsonException */
    public static function encode(mixed $value): string
    {
        return \json_encode(self::plain($value, 0), self::FLAGS);
    }

    private static function plain(mixed $value, int $depth): mixed
    {
        return match (true) {
            !\is_array($value) && !\is_object($value) => $value,
            $depth === self::DEEPEST => throw new \JsonException('It contains itself or is nested too deep'),
            \is_array($value) => self::members($value, $depth),
            $value instanceof Bytes => throw new \JsonException('It holds bytes, which JSON cannot represent'),
            $value instanceof \DateTimeInterface => Parameter::time($value),
            $value instanceof \BackedEnum => $value->value,
            $value instanceof \JsonSerializable => self::serialized($value, $depth),
            $value instanceof \Stringable => (string) $value,
            $value instanceof \UnitEnum => $value,
            default => self::object($value, $depth),
        };
    }

    private static function serialized(\JsonSerializable $value, int $depth): mixed
    {
        $serialized = $value->jsonSerialize();

        return $serialized === $value ? self::object($value, $depth) : self::plain($serialized, $depth + 1);
    }

    /** An object without public properties stays: some classes of PHP, such as \ArrayObject, show others to json_encode(). */
    private static function object(object $value, int $depth): object
    {
        $properties = \get_object_vars($value);

        return $properties === [] ? $value : (object) self::members($properties, $depth);
    }

    /**
     * A copy, because a member may be a reference to a variable of the caller.
     *
     * @param array<int|string, mixed> $values
     *
     * @return array<int|string, mixed>
     */
    private static function members(array $values, int $depth): array
    {
        $members = [];
        foreach ($values as $key => $value) {
            $members[$key] = \is_array($value) || \is_object($value) ? self::plain($value, $depth + 1) : $value;
        }

        return $members;
    }
}
