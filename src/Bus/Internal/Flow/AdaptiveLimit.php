<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

/**
 * Adapts the concurrency to the observed latency: as many handlers as run without slowing each other down, by the gradient algorithm of
 * Netflix's concurrency-limits, after TCP Vegas.
 *
 * @internal
 */
final class AdaptiveLimit
{
    public const MIN_LIMIT = 2;
    public const MAX_LIMIT = 100;
    private const INITIAL_LIMIT = 20.0;

    /** Latency may rise by this factor without consequences. */
    private const TOLERANCE = 1.5;

    /** Additional calls per step, to probe for a higher limit. */
    private const HEADROOM = 4.0;

    /** Weight of a step. */
    private const SMOOTHING = 0.2;

    /** Seconds and calls per step. */
    private const MIN_STEP_SECONDS = 0.05;
    private const MIN_STEP_CALLS = 10;

    /** Seconds in which the baseline moves half of the way to slower, and to faster calls. */
    private const BASELINE_HALF_TIME_UP = 60.0;
    private const BASELINE_HALF_TIME_DOWN = 0.2;

    public int $limit;

    private float $exact = self::INITIAL_LIMIT;

    /** Recent seconds per call; null before the first step. */
    private ?float $normal = null;

    private float $sum = 0.0;
    private int $calls = 0;
    private int $peak = 0;
    private float $since;

    public function __construct(float $now)
    {
        $this->limit = (int) self::INITIAL_LIMIT;
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
        if ($elapsed >= self::MIN_STEP_SECONDS && $this->calls >= self::MIN_STEP_CALLS || $elapsed >= 20 * self::MIN_STEP_SECONDS) {
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
        $this->normal += ($taken - $this->normal) * (1.0 - 0.5 ** ($elapsed / ($taken > $this->normal ? self::BASELINE_HALF_TIME_UP : self::BASELINE_HALF_TIME_DOWN)));
        // Far below the limit a step says nothing about it, unless calls have become slow.
        if ($gradient === 1.0 && 2 * $this->peak < $this->limit) {
            return;
        }
        $wanted = $this->exact * $gradient + self::HEADROOM;
        $this->exact = \max(self::MIN_LIMIT, \min(self::MAX_LIMIT, $this->exact + ($wanted - $this->exact) * self::SMOOTHING));
        $this->limit = (int) \round($this->exact);
    }
}
