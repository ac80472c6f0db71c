<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

/**
 * How much time has passed between two readings of a clock that several processes read in turn, and that may be set meanwhile.
 *
 * The earlier reading may be another process's, so the clock's own difference is all there is, as long as it can be true: it is
 * at least 0 and, since this process has read the clock before, at most what its monotonic clock counts since. Where it cannot
 * be true, the clock was set after that earlier reading, and what it would show now without that is known from this process's own.
 *
 * @internal
 */
final class SharedClock
{
    /** Microseconds, and a fraction of the elapsed time, by which the two clocks may differ without having been set. */
    private const TOLERANCE_MICROSECONDS = 20_000;
    private const DRIFT_TOLERANCE = 0.001;

    /** The shared and the monotonic clock at the last reading of this process, in microseconds; null before it. */
    private ?int $shared = null;
    private float $own = 0.0;

    /**
     * @param int   $seen earlier reading of the shared clock, by any process, but not before this one's last
     * @param int   $now  of the shared clock
     * @param float $own  microseconds of this process's monotonic clock now
     * @return int microseconds
     */
    public function elapsed(int $seen, int $now, float $own): int
    {
        $passed = $this->shared === null ? \PHP_INT_MAX : $own - $this->own;
        $candidates = [$now - $seen];
        if ($this->shared !== null) {
            // The expected time if the clock was not set since this process last read it.
            $candidates[] = (int) ($this->shared + $passed) - $seen;
        }
        $this->shared = $now;
        $this->own = $own;
        foreach ($candidates as $elapsed) {
            if ($elapsed >= -self::TOLERANCE_MICROSECONDS && $elapsed <= $passed * (1.0 + self::DRIFT_TOLERANCE) + self::TOLERANCE_MICROSECONDS) {
                return \max(0, $elapsed);
            }
        }

        // It was set more than once: too slow for a moment is better than too fast.
        return 0;
    }
}
