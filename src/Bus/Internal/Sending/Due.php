<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\Internal\Clock;
use Weft\Internal\Number;

/**
 * The time at which a message is due.
 *
 * @internal
 */
final class Due
{
    /** @throws \ValueError when both are given or the delay is out of its bounds */
    public static function check(?float $delay, ?\DateTimeInterface $at): void
    {
        if ($delay !== null && $at !== null) {
            throw new \ValueError('A message has either a delay or a time, not both');
        }
        if ($delay !== null && (\is_nan($delay) || $delay < 0.0 || $delay >= 1e10)) {
            throw new \ValueError('A delay must be finite and at least 0 seconds, got ' . Number::text($delay) . ' seconds');
        }
    }

    /**
     * @param float|null              $delay seconds from now
     * @param \DateTimeInterface|null $at    a time in the past means now
     * @return float|null a time of {@see Clock::now()}; null for now
     */
    public static function of(?float $delay, ?\DateTimeInterface $at): ?float
    {
        $due = $at !== null ? Clock::milliseconds((float) $at->format('U.u')) / 1000 : ($delay === null ? null : Clock::now() + $delay);

        return $due === null || $delay === 0.0 || $due <= Clock::now() ? null : $due;
    }

    public static function databaseRequired(object $message): \Error
    {
        return new \Error('Delayed messages need a database; ' . $message::class . ' cannot be stored: pass a Database to Bus::connect()');
    }
}
