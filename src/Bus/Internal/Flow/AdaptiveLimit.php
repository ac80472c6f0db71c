<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

/**
 * How many handlers may run at once, found by how long they take: as many as do not make each other slower.
 *
 * The gradient of Netflix's concurrency-limits (`Gradient2Limit`; the idea is TCP Vegas, Brakmo and Peterson 1995): at each step
 * the limit is multiplied by what calls have taken of late over what they take now, and a few are added to see whether
 * more would do. Calls that have become slower bring it down, at most by half a step; calls that stay as fast let it
 * grow. Unlike there what calls have taken of late follows time and not the number of calls, quickly down and
 * slowly up, so that a database that has become slow is not taken for normal within seconds.
 *
 * @internal
 */
final class AdaptiveLimit
{
    public const LEAST = 2;
    public const MOST = 100;
    private const FIRST = 20.0;

    /** Calls may be this much slower than of late without any consequence. */
    private const TOLERANCE = 1.5;

    /** What is added at each step: calls that may wait for others. */
    private const HEADROOM = 4.0;

    /** How much of a step is taken. */
    private const SMOOTHING = 0.2;

    /** Seconds and calls that make a step. */
    private const STEP = 0.05;
    private const CALLS = 10;

    /** Seconds in which what is normal follows half of the way to calls that take longer, and to those that take less. */
    private const UP = 60.0;
    private const DOWN = 0.2;

    public int $limit;

    private float $exact = self::FIRST;

    /** Seconds a call takes of late; null before the first step. */
    private ?float $normal = null;

    private float $sum = 0.0;
    private int $calls = 0;
    private int $peak = 0;
    private float $since;

    public function __construct(float $now)
    {
        $this->limit = (int) self::FIRST;
        $this->since = $now;
    }

    /**
     * A call has ended.
     *
     * @param float $seconds it took
     * @param int   $running calls at its end, itself included
     * @param float $now     by the monotonic clock
     */
    public function ended(float $seconds, int $running, float $now): void
    {
        $this->sum += $seconds;
        $this->calls++;
        $this->peak = \max($this->peak, $running);
        $elapsed = $now - $this->since;
        if ($elapsed >= self::STEP && $this->calls >= self::CALLS || $elapsed >= 20 * self::STEP) {
            $this->step($this->sum / $this->calls, $elapsed);
            $this->sum = 0.0;
            $this->calls = $this->peak = 0;
            $this->since = $now;
        }
    }

    private function step(float $taken, float $elapsed): void
    {
        $taken = \max($taken, 1e-6);
        $this->normal ??= $taken;
        $gradient = \max(0.5, \min(1.0, self::TOLERANCE * $this->normal / $taken));
        $this->normal += ($taken - $this->normal) * (1.0 - 0.5 ** ($elapsed / ($taken > $this->normal ? self::UP : self::DOWN)));
        // Far from the limit nothing is learnt about it, unless calls have become slow.
        if ($gradient === 1.0 && 2 * $this->peak < $this->limit) {
            return;
        }
        $wanted = $this->exact * $gradient + self::HEADROOM;
        $this->exact = \max(self::LEAST, \min(self::MOST, $this->exact + ($wanted - $this->exact) * self::SMOOTHING));
        $this->limit = (int) \round($this->exact);
    }
}
