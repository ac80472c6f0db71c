<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

use Weft\Internal\Number;

/**
 * Conversions of a `google.protobuf.Duration`. Its two fields are exact; a float of seconds is not.
 *
 * @internal
 */
trait DurationMethods
{
    /** 10,000 years, the range of `google.protobuf.Duration`. */
    private const MAX_SECONDS = 315_576_000_000;

    /**
     * @param float $seconds rounded to nanoseconds; at most 315,576,000,000 in either direction
     *
     * @throws \ValueError
     */
    public static function ofSeconds(float $seconds): self
    {
        if (!(\abs($seconds) <= self::MAX_SECONDS)) {
            throw new \ValueError('A duration must have -315,576,000,000 to 315,576,000,000 seconds, got ' . Number::text($seconds));
        }
        $whole = (int) $seconds;
        $nanos = (int) \round(($seconds - $whole) * 1e9);

        // A fraction that is rounded to a second is carried over.
        return new self($whole + \intdiv($nanos, 1_000_000_000), $nanos % 1_000_000_000);
    }

    /** Exact to a nanosecond up to about 100 days, to a microsecond up to about 285 years. */
    public function toSeconds(): float
    {
        return $this->seconds + $this->nanos / 1e9;
    }
}
