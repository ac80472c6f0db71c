<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Http\Internal\PositiveLimits;

/** Limits of the messages of a gRPC server; see {@see Limits}. */
final class MessageLimits
{
    /**
     * @param int $bytes bytes of a message, compressed or not, at least 1; a larger one ends the call with ResourceExhausted. Raise it for large
     *     messages, or stream them
     * @param int $bufferedBytes bytes of buffered unary requests over 64 KiB of one connection, at least 1; flow control holds back the rest. A
     *     larger request is buffered alone. Raise it with `bytes`
     * @param float $requestTimeout seconds for a unary request to arrive, extended while it arrives with at least 1 KiB/s. A slower one
     *     ends with DeadlineExceeded. Raise it for large requests over slow networks
     * @param float|null $writeTimeout seconds that an HTTP/2 client may read nothing of its responses before its connection is closed,
     *     above 0; null is unlimited, for clients that leave messages of a stream unread for longer. Raise it for clients that pause
     *
     * @throws \ValueError for a value that is not greater than 0
     */
    public function __construct(
        public readonly int $bytes = 4_194_304,
        public readonly int $bufferedBytes = 16_777_216,
        public readonly float $requestTimeout = 30.0,
        public readonly ?float $writeTimeout = 30.0,
    ) {
        PositiveLimits::check('messages.', $this);
    }
}
