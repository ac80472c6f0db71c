<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Http\Internal\PositiveLimits;

/** Limits of long calls of a gRPC server; see {@see Limits}. */
final class StreamLimits
{
    /**
     * @param int $streams concurrent streaming calls, at least 1; further calls wait in the queue. Raise it with the number of clients that stay
     *     subscribed
     * @param int $streamsPerConnection open streaming calls of one connection, at least 1; further calls end with ResourceExhausted. Raise it where
     *     a proxy brings the calls of many clients over one connection
     * @param int $watches open health watches, at least 1; further watches end with ResourceExhausted. Raise it where many balancers watch the server
     * @param int $watchesPerConnection open health watches of one connection, at least 1. Raise it where a proxy brings the watches of many clients
     *     over one connection
     *
     * @throws \ValueError for a value that is not greater than 0
     */
    public function __construct(
        public readonly int $streams = 2_000,
        public readonly int $streamsPerConnection = 200,
        public readonly int $watches = 1_000,
        public readonly int $watchesPerConnection = 10,
    ) {
        PositiveLimits::check('streams.', $this);
    }
}
