<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Internal\Number;

/** Timeout and retries of the calls of some methods. */
final class MethodConfig
{
    /**
     * @param float|null $timeout seconds, above 0; null for no limit. A shorter timeout of a call takes precedence
     * @param RetryPolicy|null $retry for methods with a single request message, until the first response message. Calls that stream
     *     requests are never retried.
     * @param bool $waitForReady waits until a server accepts a connection, instead of failing with Unavailable
     *
     * @throws \ValueError for a timeout that is not greater than 0
     */
    public function __construct(
        public readonly ?float $timeout = null,
        public readonly ?RetryPolicy $retry = null,
        public readonly bool $waitForReady = false,
    ) {
        if ($timeout !== null && !($timeout > 0)) {
            throw new \ValueError('timeout must be greater than 0, got ' . Number::text($timeout));
        }
    }
}
