<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

use Weft\Protobuf\DecodingException;
use Weft\Protobuf\PreciseTime;

/**
 * `google.protobuf.Timestamp` between its two numbers and `\DateTimeImmutable`. Called by the extension.
 *
 * @internal
 */
final class Instants
{
    private const MAX_NANOS = 999_999_999;

    /** @throws DecodingException the nanoseconds are out of the range that timestamp.proto allows */
    public static function at(int $seconds, int $nanos): \DateTimeImmutable
    {
        if ($nanos < 0 || $nanos > self::MAX_NANOS) {
            throw new DecodingException('Cannot decode google.protobuf.Timestamp: nanos must be 0 to ' . self::MAX_NANOS);
        }
        $time = \sprintf('@%d', $seconds);
        $time = $nanos % 1000 === 0 ? new \DateTimeImmutable($time) : new PreciseTime($time, nanoseconds: $nanos % 1000);

        return $nanos < 1000 ? $time : $time->modify(\sprintf('+%d microseconds', \intdiv($nanos, 1000)));
    }

    /** @return array{int, int}|string seconds and nanoseconds, or what is wrong */
    public static function parts(mixed $time): array|string
    {
        if (!$time instanceof \DateTimeInterface) {
            return 'holds an object of ' . \get_debug_type($time) . ', expected DateTimeInterface';
        }
        $nanos = $time instanceof PreciseTime ? $time->nanoseconds : 0;

        return [$time->getTimestamp(), 1000 * (int) $time->format('u') + $nanos];
    }
}
