<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Http\Internal\PositiveLimits;

/** Limits of the messages of a gRPC server; see {@see Limits}. */
final class MessageLimits
{
    /** A status, whose message has at most 2 KiB, fits. */
    private const MIN_METADATA_BYTES = 4_096;

    /**
     * @param int $bytes bytes of a message, compressed or not, at least 1; a larger one ends the call with ResourceExhausted. Raise it for large
     *     messages, or stream them
     * @param int $bufferedBytes bytes of buffered unary requests over 64 KiB of one connection, at least 1; flow control holds back the rest. A
     *     larger request is buffered alone. Raise it with `bytes`
     * @param float $requestTimeout seconds for a unary request to arrive, extended while it arrives with at least 1 KiB/s. A slower one
     *     ends with DeadlineExceeded. Raise it for large requests over slow networks
     * @param float|null $writeTimeout seconds that an HTTP/2 client may read nothing of its responses before its connection is closed,
     *     above 0; null is unlimited, for clients that leave messages of a stream unread for longer. Raise it for clients that pause
     * @param int $metadataBytes bytes of the metadata that a handler sends before or after its messages, status and details included, as RFC 9113
     *     §6.5.2 counts them, at least 4096; more end the call with Internal. A call that fails anyway keeps its status and message and loses
     *     the details or, if these do not suffice, all metadata. Raise it only if all clients accept more: others close the connection,
     *     with all its calls
     *
     * @throws \ValueError for a value that is not greater than 0, or too few bytes of metadata
     */
    public function __construct(
        public readonly int $bytes = 4_194_304,
        public readonly int $bufferedBytes = 16_777_216,
        public readonly float $requestTimeout = 30.0,
        public readonly ?float $writeTimeout = 30.0,
        public readonly int $metadataBytes = 8_192,
    ) {
        PositiveLimits::check('messages.', $this);
        if ($metadataBytes < self::MIN_METADATA_BYTES) {
            throw new \ValueError('The limit messages.metadataBytes must be at least ' . self::MIN_METADATA_BYTES . ", got $metadataBytes");
        }
    }
}
