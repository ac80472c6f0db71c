<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\PositiveLimits;

/** Limits of event streams and WebSockets; see {@see Limits}. */
final class LongLivedLimits
{
    /**
     * @param int $total concurrent event streams and WebSockets, at least 1; further ones are answered 503. Servers whose `inFlight` and
     *     `longLived` (of gRPC the three of its limits) are more than `maxFibers` of `Weft\run()` together each get their proportional part,
     *     of which `longLived` gets half at most. Raise it with the number of clients that stay connected
     * @param int $perConnection concurrent event streams and WebSockets of one connection, at least 1. Raise it where one HTTP/2 connection carries the streams of many users
     *
     * @throws \ValueError for a value that is not greater than 0
     */
    public function __construct(
        public readonly int $total = 5_000,
        public readonly int $perConnection = 64,
    ) {
        PositiveLimits::check('longLived.', $this);
    }
}
