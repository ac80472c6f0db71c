<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * How often a handler may be called; on a handler method or its class. Handlers with one `$name` share their limit.
 *
 * A call that comes too early waits for its turn, before its transaction begins. It holds its place among the handlers that
 * run at once, so a queue whose handlers are limited differently is better made two. A call that is cancelled while it waits
 * loses its turn. The time a handler has ({@see Timeout}) begins with the call.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class RateLimit
{
    /**
     * @param float       $perSecond calls, above 0
     * @param int<1, max> $burst     calls that may come at once after a time without any
     * @param bool        $shared    for all processes with the bus's database together; else for each by itself. A process takes
     *                               its turns for 0.1 seconds in advance
     * @param string|null $name      by default the handler's; 1 to 200 bytes
     */
    public function __construct(
        public readonly float $perSecond,
        public readonly int $burst = 1,
        public readonly bool $shared = false,
        public readonly ?string $name = null,
    ) {
        if (\is_nan($perSecond) || $perSecond <= 0.0 || $perSecond > 1e6) {
            throw new \ValueError("A rate limit must be above 0 and at most 1,000,000 per second, got {$perSecond}");
        }
        if ($burst < 1) {
            throw new \ValueError("The burst of a rate limit must be at least 1, got {$burst}");
        }
        if ($name !== null && ($name === '' || \strlen($name) > 200)) {
            throw new \ValueError("The name of a rate limit must have 1 to 200 bytes, \"{$name}\" has " . \strlen($name));
        }
    }
}
