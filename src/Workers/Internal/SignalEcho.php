<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * Tells a signal that comes twice at once from one that is sent a second time.
 *
 * @internal
 */
final class SignalEcho
{
    /**
     * Seconds. GNU `timeout`, and shells and process managers that signal a process and its group, send the same signal twice within
     * milliseconds; two keystrokes are further apart.
     */
    private const INTERVAL = 0.1;

    private ?Signal $last = null;
    private float $at = 0.0;

    /** Whether the signal repeats the last one, at a time in seconds of the monotonic clock. */
    public function hears(Signal $signal, float $now): bool
    {
        if ($signal === $this->last && $now - $this->at < self::INTERVAL) {
            return true;
        }
        $this->last = $signal;
        $this->at = $now;

        return false;
    }
}
