<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\Internal\Number;

/** How long a pool keeps its resources, in seconds; see {@see PoolOptions}. */
final class Lifetime
{
    /**
     * @param float $max maximum age in seconds; 0: unlimited. Set it below the limits of servers and firewalls
     * @param float $jitter fraction of `max`, 0 to 1, over which the ends of resources are spread that were created together. Raise it
     *     where many renewals at a time burden the server
     * @param float $renewal seconds after its lifetime a resource may still be lent while borrowers wait; 0: it is closed at its next
     *     return. Raise it where creation is slow
     * @param float $idle seconds after which idle resources beyond `PoolOptions::$minimumIdle` are closed; 0: never. Lower it where
     *     connections should be freed sooner after a peak
     *
     * @throws \ValueError for a time that is negative, NaN or infinite, or a jitter outside of 0 to 1
     */
    public function __construct(
        public readonly float $max = 1800.0,
        public readonly float $jitter = 0.4,
        public readonly float $renewal = 1.0,
        public readonly float $idle = 600.0,
    ) {
        Internal\Seconds::check('lifetime', ['max' => $max, 'renewal' => $renewal, 'idle' => $idle]);
        if (!($jitter >= 0.0 && $jitter <= 1.0)) {
            throw new \ValueError('The option lifetime.jitter of a pool must be between 0 and 1, got ' . Number::text($jitter));
        }
    }
}
