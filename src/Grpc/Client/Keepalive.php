<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Internal\Number;

/**
 * Pings that detect a lost server during a call. By default gRPC servers disconnect clients that ping more often than every five minutes.
 */
final class Keepalive
{
    /**
     * @param float $interval seconds, above 0, of silence during a call after which the server is pinged
     * @param float $timeout seconds, above 0, to wait for the answer to a ping; then the calls fail with Unavailable. Raise it for networks that
     *     lose packets
     *
     * @throws \ValueError for a value that is not greater than 0
     */
    public function __construct(public readonly float $interval, public readonly float $timeout = 20.0)
    {
        foreach (['interval' => $interval, 'timeout' => $timeout] as $name => $value) {
            if (!($value > 0)) {
                throw new \ValueError("The $name of a keepalive must be greater than 0, got " . Number::text($value));
            }
        }
    }
}
