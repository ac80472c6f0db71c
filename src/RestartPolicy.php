<?php

declare(strict_types=1);

namespace Weft;

/**
 * When a background task of an {@see App} is started again after it has ended.
 *
 * The pause before a restart grows: it doubles with each consecutive failure up to `$maxDelay`, and varies by a quarter. A task that ran
 * longer than `$maxDelay` begins with `$delay` again.
 */
final class RestartPolicy
{
    private function __construct(
        /** @internal */
        public readonly bool $afterReturn,
        /** @internal */
        public readonly bool $afterFailure,
        /** @internal */
        public readonly float $delay = 0.0,
        /** @internal */
        public readonly float $maxDelay = 0.0,
        /** @internal */
        public readonly ?int $limit = null,
    ) {
        if (!($delay >= 0.0 && $maxDelay >= $delay && $maxDelay < \INF)) {
            throw new \ValueError('The pauses of a restart must be at least 0 seconds and finite, and the longest not below the first, got ' . Internal\Number::text($delay) . ' and ' . Internal\Number::text($maxDelay));
        }
        if ($limit !== null && $limit < 1) {
            throw new \ValueError("The limit of restarts must be at least 1, got {$limit}");
        }
    }

    /** Never: a task that returns is done, and one that fails ends the application with its failure. */
    public static function never(): self
    {
        return new self(false, false);
    }

    /**
     * After a failure, which is logged; a task that returns is done. The default.
     *
     * @param float $delay seconds until the first restart
     * @param float $maxDelay the longest pause in seconds
     * @param int<1, max>|null $limit consecutive failures after which the application ends with the last one; null for no limit
     */
    public static function onFailure(float $delay = 1.0, float $maxDelay = 60.0, ?int $limit = null): self
    {
        return new self(false, true, $delay, $maxDelay, $limit);
    }

    /**
     * After a failure and after a return, for periodic work: the task runs again `$delay` seconds after it has returned.
     *
     * @param float $delay seconds until the next run, and until the first restart after a failure
     * @param float $maxDelay the longest pause in seconds
     * @param int<1, max>|null $limit consecutive failures after which the application ends with the last one; null for no limit
     */
    public static function always(float $delay = 1.0, float $maxDelay = 60.0, ?int $limit = null): self
    {
        return new self(true, true, $delay, $maxDelay, $limit);
    }
}
