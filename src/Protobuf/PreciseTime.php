<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/**
 * A point in time with nanoseconds, where `\DateTimeImmutable` alone has microseconds. A decoded `Timestamp` is one only if
 * it needs to be, so that nothing is lost when it is sent on.
 *
 * Methods that calculate, such as `modify()`, leave `$nanoseconds` as they are.
 */
final class PreciseTime extends \DateTimeImmutable
{
    /**
     * @param string $datetime a time as \DateTimeImmutable reads it
     * @param \DateTimeZone|null $timezone of a time that names none; null is PHP's own
     * @param int $nanoseconds nanoseconds, 0 to 999, on top of the microseconds
     */
    public function __construct(
        string $datetime = 'now',
        ?\DateTimeZone $timezone = null,
        public readonly int $nanoseconds = 0,
    ) {
        if ($nanoseconds < 0 || $nanoseconds > 999) {
            throw new \ValueError("\$nanoseconds is {$nanoseconds}, expected 0 to 999");
        }
        parent::__construct($datetime, $timezone);
    }
}
