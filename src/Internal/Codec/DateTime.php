<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * DateTimeImmutable as ISO 8601 with microseconds and offset (RFC 3339 §5.6); the name of a time zone is not kept.
 *
 * @internal
 */
final class DateTime implements Type
{
    private const FORMAT = 'Y-m-d\TH:i:s.uP';
    private const PATTERN = '/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$/D';

    public function decode(mixed $value): mixed
    {
        if (!\is_string($value)) {
            throw MismatchException::of($this->name(), $value);
        }
        if (\preg_match(self::PATTERN, $value, $part) !== 1) {
            throw MismatchException::described($this->name(), 'a string in another format');
        }
        $format = ($part[1] ?? '') === '' ? 'Y-m-d\TH:i:sP' : self::FORMAT;
        $time = \DateTimeImmutable::createFromFormat($format, $value);
        if ($time === false || (\DateTimeImmutable::getLastErrors()['warning_count'] ?? 0) > 0) {
            throw MismatchException::described($this->name(), 'a date that does not exist');
        }

        return $time;
    }

    public function encode(mixed $value): mixed
    {
        if (!$value instanceof \DateTimeImmutable) {
            throw MismatchException::of('DateTimeImmutable', $value);
        }
        $text = $value->format(self::FORMAT);

        return $value->getOffset() % 60 === 0 && \preg_match(self::PATTERN, $text) === 1
            ? $text
            : throw MismatchException::described('a year from 0000 to 9999 and an offset of whole minutes', 'another');
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
