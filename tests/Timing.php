<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\Assert;

/** Waits and bounds that a busy machine does not break. */
final class Timing
{
    /** Seconds after which a wait counts as a hang. */
    public const DEADLINE = 60.0;

    private const TRIES = 6;

    /** Waits until the condition holds, and fails after {@see self::DEADLINE}. */
    public static function until(\Closure $condition, string $what): void
    {
        $deadline = \hrtime(true) / 1e9 + self::DEADLINE;
        while (!($holds = $condition()) && \hrtime(true) / 1e9 < $deadline) {
            \usleep(5_000);
        }
        Assert::assertTrue($holds, 'Not within ' . self::DEADLINE . " s: $what");
    }

    /**
     * Asserts that the code takes less time than what it must not wait for. A busy machine delays some runs, a wait delays all of
     * them: the quickest of several runs counts.
     *
     * @param float $seconds how long the run would take if it waited
     */
    public static function assertDoesNotWait(float $seconds, \Closure $run, string $message = ''): void
    {
        $quickest = \INF;
        for ($try = 0; $quickest >= $seconds && $try < self::TRIES; $try++) {
            $start = \hrtime(true);
            $run();
            $quickest = \min($quickest, (\hrtime(true) - $start) / 1e9);
        }
        Assert::assertLessThan($seconds, $quickest, $message);
    }
}
