<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** Timeout and retries of the calls of some methods. */
final class MethodConfig
{
    /**
     * @param float|null $timeout seconds, above 0; null for no limit. A shorter timeout of a call takes precedence
     * @param RetryPolicy|null $retry for methods with a single request message, until the first response message. Calls that stream
     *     requests are never retried.
     * @param bool $waitForReady waits until a server accepts a connection, instead of failing with Unavailable
     */
    public function __construct(
        public readonly ?float $timeout = null,
        public readonly ?RetryPolicy $retry = null,
        public readonly bool $waitForReady = false,
    ) {
    }
}
