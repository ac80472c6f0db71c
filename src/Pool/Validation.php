<?php

declare(strict_types=1);

namespace Weft\Pool;

/** When a pool checks that a resource still works, in seconds; see {@see PoolOptions}. */
final class Validation
{
    /**
     * @param float $after seconds: a resource that was unused for longer is validated, with a round trip, before it is lent; 0: never. Lower it
     *     where dead peers must be noticed sooner. While peers do not answer, each failure doubles how many are validated at a time
     * @param float $keepalive seconds between validations of an idle resource; 0: never. Set it below the time after which a firewall drops
     *     idle connections
     * @param float $timeout seconds that a validation may take, at least 0. Raise it where the server answers slowly
     *
     * @throws \ValueError for a time that is negative, NaN or infinite
     */
    public function __construct(
        public readonly float $after = 30.0,
        public readonly float $keepalive = 0.0,
        public readonly float $timeout = 1.0,
    ) {
        Internal\Seconds::check('validation', ['after' => $after, 'keepalive' => $keepalive, 'timeout' => $timeout]);
    }
}
