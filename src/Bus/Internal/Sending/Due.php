<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\Internal\Clock;

/**
 * When a message is to leave.
 *
 * @internal
 */
final class Due
{
    /**
     * @param float|null              $delay seconds from now
     * @param \DateTimeInterface|null $at    a time that is over means now
     * @return float|null as {@see Clock::now()} has it; null for now
     */
    public static function of(?float $delay, ?\DateTimeInterface $at): ?float
    {
        if ($delay !== null && $at !== null) {
            throw new \ValueError('A message leaves after a delay or at a time, not both');
        }
        if ($delay !== null && (\is_nan($delay) || $delay < 0.0 || $delay >= 1e10)) {
            throw new \ValueError("A delay must not be negative or endless, got {$delay} seconds");
        }
        $due = $at !== null ? (float) $at->format('U.u') : ($delay === null ? null : Clock::now() + $delay);

        return $due === null || $delay === 0.0 || $due <= Clock::now() ? null : $due;
    }

    public static function nowhere(object $message): \Error
    {
        return new \Error('The bus has nowhere to keep ' . $message::class . ' until it is due: give Bus::connect() a Database');
    }
}
