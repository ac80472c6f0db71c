<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * What a server takes from its clients. The defaults suit one that faces the internet. Time-outs have a precision of 0.25 s.
 */
final class Limits
{
    /**
     * @param int $connections at a time; more wait in the kernel's queue
     * @param int $inFlight requests being handled at a time; more wait in the queue
     * @param int $queue requests waiting for their turn; more are answered 503
     * @param int $headerCount fields of a request; more are answered 431
     * @param int $headerBytes of request line and fields; more are answered 431
     * @param int $bodyBytes of a request's body; more are answered 413
     * @param float $headerTimeout seconds from the first byte of a request to the end of its header
     * @param float $bodyTimeout seconds between two pieces of a body
     * @param float $idleTimeout seconds a connection is kept without a request
     * @param float $writeTimeout seconds a client may take nothing of what is sent to it
     * @param float|null $deadline seconds from a request's header to its answer, after which its task is cancelled and the
     *     answer is 503; null is for ever. A streamed body is not in it once it has begun.
     */
    public function __construct(
        public readonly int $connections = 10_000,
        public readonly int $inFlight = 1_000,
        public readonly int $queue = 10_000,
        public readonly int $headerCount = 100,
        public readonly int $headerBytes = 16_384,
        public readonly int $bodyBytes = 8_388_608,
        public readonly float $headerTimeout = 10.0,
        public readonly float $bodyTimeout = 30.0,
        public readonly float $idleTimeout = 75.0,
        public readonly float $writeTimeout = 30.0,
        public readonly ?float $deadline = 60.0,
    ) {
        foreach (\get_object_vars($this) as $name => $value) {
            if ($value !== null && $value <= 0) {
                throw new \ValueError("$name must be greater than 0, got $value");
            }
        }
        if ($headerBytes < 8_192) {
            throw new \ValueError("headerBytes must be at least 8192, got $headerBytes");
        }
    }
}
