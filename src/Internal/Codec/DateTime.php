<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * DateTimeImmutable as ISO 8601 with microseconds and offset (RFC 3339 §5.6); the name of a time zone is not kept, and of a fraction that is
 * read no more than microseconds.
 *
 * @internal
 */
final class DateTime implements Type
{
    private const FORMAT = 'Y-m-d\TH:i:s.uP';
    /** Seconds, the microseconds that PHP keeps, and the offset on their own. */
    private const PATTERN = '/^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.(\d{1,6})\d*)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/Di';
    private const SECONDS_OF_A_DAY = 86_400;

    public function decode(mixed $value): mixed
    {
        if (!\is_string($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        if (\preg_match(self::PATTERN, $value, $part) !== 1) {
            throw MismatchException::described($this->name(), 'a string in another format');
        }
        [, $minute, $second, $fraction, $offset] = $part;
        $isLeapSecond = $second === '60';
        $text = $minute . ($isLeapSecond ? '59' : $second) . '.' . ($fraction === '' ? '0' : $fraction) . $offset;
        $time = \DateTimeImmutable::createFromFormat(self::FORMAT, \strtoupper($text));
        if ($time === false || (\DateTimeImmutable::getLastErrors()['warning_count'] ?? 0) > 0) {
            throw MismatchException::described($this->name(), 'a date that does not exist');
        }

        return $isLeapSecond ? $this->afterLeapSecond($time) : $time;
    }

    /** PHP has no leap seconds (RFC 3339 §5.7): one is the first second of the next day in UTC. */
    private function afterLeapSecond(\DateTimeImmutable $before): \DateTimeImmutable
    {
        $time = $before->modify('+1 second');

        return $time->getTimestamp() % self::SECONDS_OF_A_DAY === 0 ? $time : throw MismatchException::described($this->name(), 'a date that does not exist');
    }

    public function encode(mixed $value): mixed
    {
        if (!$value instanceof \DateTimeImmutable) {
            throw MismatchException::of('DateTimeImmutable', $value);
        }
        $text = $value->format(self::FORMAT);

        return $value->getOffset() % 60 === 0 && \preg_match(self::PATTERN, $text) === 1
            ? $text
            : throw MismatchException::described('a year from 0000 to 9999 and an offset of whole minutes below 24 hours', 'another');
    }

    public function schema(): string|array
    {
        return 'date-time';
    }

    public function name(): string
    {
        return 'ISO 8601 date-time with offset';
    }
}
