<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Sql\Bytes;

/**
 * The conversions of values that need PHP. Called by the extension for everything that is not a scalar or a list.
 *
 * @internal
 */
final class Parameter
{
    /** The date, and the time of day without its fraction. */
    private const TIMESTAMP = '/^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)\.\d{1,9})?(?:Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?)?)?$/D';

    /** @return array{'json'|'timestamp'|'bytes'|'text'|'refused', string} the last with what the value is or has done */
    public static function encode(mixed $value): array
    {
        return match (true) {
            $value instanceof Bytes => ['bytes', $value->bytes],
            $value instanceof \DateTimeInterface => ['timestamp', self::time($value)],
            // A number in a list that becomes JSON; the same text as a parameter.
            $value instanceof \BackedEnum => [\is_int($value->value) ? 'json' : 'text', (string) $value->value],
            \is_array($value), $value instanceof \JsonSerializable, $value instanceof \stdClass => self::document($value),
            $value instanceof \Stringable => ['text', (string) $value],
            default => ['refused', 'is of type ' . \get_debug_type($value) . ', which cannot be sent to a database'],
        };
    }

    /** ISO 8601 with microseconds and offset. */
    public static function time(\DateTimeInterface $time): string
    {
        return $time->format('Y-m-d\TH:i:s.uP') . self::secondsOfOffset($time);
    }

    /** @return mixed arrays for objects; a text that is no JSON, which SQLite lets any column hold, stays text */
    public static function json(string $document): mixed
    {
        try {
            return \json_decode($document, true, flags: \JSON_THROW_ON_ERROR | \JSON_BIGINT_AS_STRING);
        } catch (\JsonException) {
            return $document;
        }
    }

    /**
     * A text that is not an ISO date with a four-digit year, such as `infinity` or `now`, stays text. So do a day that no calendar has and a time
     * that the clock skips in PHP's zone: PHP makes a later one of them, which would be stored in their place when it is written back.
     */
    public static function timestamp(string $text): \DateTimeImmutable|string
    {
        if (\preg_match(self::TIMESTAMP, $text, $parts) !== 1) {
            return $text;
        }
        $time = \date_create_immutable($text);
        $given = isset($parts[2]) ? "{$parts[1]} {$parts[2]}" : $parts[1];

        return $time !== false && \str_starts_with($time->format('Y-m-d H:i:s'), $given) ? $time : $text;
    }

    /** PHP's formats leave them out. Zones have them before they had a standard time: Berlin +00:53:28, until 1893. */
    private static function secondsOfOffset(\DateTimeInterface $time): string
    {
        $seconds = \abs($time->getOffset()) % 60;

        return $seconds === 0 ? '' : \sprintf(':%02d', $seconds);
    }

    /** @return array{'json'|'refused', string} */
    private static function document(mixed $value): array
    {
        try {
            return ['json', Document::encode($value)];
        } catch (\JsonException $failure) {
            return ['refused', 'cannot be encoded as JSON: ' . \lcfirst($failure->getMessage())];
        }
    }
}
