<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Identifier;
use Weft\Internal\Number;

/**
 * Limits how often a handler is called; on a handler method or its class. Handlers with the same `$name` share a limit.
 *
 * A call that exceeds the limit waits, before its transaction begins. It occupies a slot of the concurrency meanwhile, so handlers with
 * different limits should have separate queues. Cancelling a waiting call gives up its slot in the rate. The {@see Timeout} starts with
 * the call.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class RateLimit
{
    /**
     * @param float       $perSecond calls per second, above 0
     * @param int<1, max> $burst     calls that may run at once after a period without calls; at most what the rate
     *                               allows in 1,000,000,000 seconds
     * @param bool        $shared    whether all processes with the same database share the limit. A process reserves calls for 0.1
     *                               seconds in advance
     * @param string|null $name      1 to 200 bytes; default: the handler's name
     */
    public function __construct(
        public readonly float $perSecond,
        public readonly int $burst = 1,
        public readonly bool $shared = false,
        public readonly ?string $name = null,
    ) {
        if (\is_nan($perSecond) || $perSecond <= 0.0 || $perSecond > 1e6) {
            throw new \ValueError('A rate limit must be above 0 and at most 1,000,000 per second, got ' . Number::text($perSecond));
        }
        if ($burst < 1) {
            throw new \ValueError("The burst of a rate limit must be at least 1, got {$burst}");
        }
        // Shared limits count microseconds in 64 bits.
        if ($burst / $perSecond > 1e9) {
            throw new \ValueError("A rate limit must allow its burst within 1,000,000,000 seconds, got {$burst} at " . Number::text($perSecond) . ' per second');
        }
        $name === null || Identifier::check('The name of a rate limit', $name, 200);
    }
}
