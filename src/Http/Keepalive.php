<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\PositiveLimits;

/** How long connections live, in seconds; see {@see Limits}. */
final class Keepalive
{
    /**
     * @param float $idle seconds that an idle connection is kept, above 0. Set it above the idle timeout of a load balancer in front
     * @param float|null $maxAge seconds after which a connection accepts no more requests, above 0, with a jitter of 10 %: HTTP/2 sends GOAWAY,
     *     HTTP/1.1 `connection: close` with the next response; null is unlimited. Set it where clients must be distributed anew
     * @param float|null $ageGrace seconds after `maxAge` for the requests in flight, above 0; null is unlimited. Lower it where old connections
     *     must end soon
     * @param float|null $pingInterval seconds after which a silent HTTP/2 client is pinged, above 0; null disables it. Set it where a network
     *     drops idle connections
     * @param float $pingTimeout seconds to wait for the answer to a ping before the connection is closed, above 0. Raise it for networks that lose
     *     packets
     * @param float|null $minPingInterval the minimum seconds between pings of an HTTP/2 client, above 0. At the third early ping without a
     *     response in between, the connection is closed with GOAWAY `too_many_pings`; null allows any. Set it where clients ping needlessly often
     *
     * @throws \ValueError for a value that is not greater than 0
     */
    public function __construct(
        public readonly float $idle = 75.0,
        public readonly ?float $maxAge = null,
        public readonly ?float $ageGrace = null,
        public readonly ?float $pingInterval = null,
        public readonly float $pingTimeout = 20.0,
        public readonly ?float $minPingInterval = null,
    ) {
        PositiveLimits::check('keepalive.', $this);
    }
}
