<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

/**
 * Conversions of a `google.protobuf.Duration`. Its two fields are exact; a float of seconds is not.
 *
 * @internal
 */
trait DurationMethods
{
    /** @param float $seconds rounded to nanoseconds */
    public static function ofSeconds(float $seconds): self
    {
        $whole = (int) $seconds;

        return new self($whole, (int) \round(($seconds - $whole) * 1e9));
    }

    /** Exact to a nanosecond up to about 100 days, to a microsecond up to about 285 years. */
    public function toSeconds(): float
    {
        return $this->seconds + $this->nanos / 1e9;
    }
}
