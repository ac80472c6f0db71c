<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

use Weft\Protobuf\PreciseTime;

/**
 * `google.protobuf.Timestamp` between its two numbers and `\DateTimeImmutable`. Called by the extension.
 *
 * @internal
 */
final class Instants
{
    /** @param int $nanos 0 to 999,999,999, which the extension has checked */
    public static function at(int $seconds, int $nanos): \DateTimeImmutable
    {
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
