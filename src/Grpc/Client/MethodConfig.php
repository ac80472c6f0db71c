<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** How the calls of some methods are made. */
final class MethodConfig
{
    /**
     * @param float|null $timeout seconds; a call that names less has less
     * @param RetryPolicy|null $retry for methods that take one message, until the first message of the answer. Others are never made
     *     again: their messages are gone.
     * @param bool $waitForReady until a server can be connected to, instead of failing with Unavailable when none can
     */
    public function __construct(
        public readonly ?float $timeout = null,
        public readonly ?RetryPolicy $retry = null,
        public readonly bool $waitForReady = false,
    ) {
    }
}
