<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Grpc\Internal\Details;
use Weft\Protobuf\Message;

/**
 * Ends a call with a status: thrown by a handler or an interceptor it is sent to the client, its message included. A client
 * throws it for every call that does not end with Ok.
 */
final class StatusException extends \RuntimeException implements GrpcException
{
    /**
     * @param Status $status any but Ok
     * @param string $message for the other side to read, any Unicode text; bytes that are none arrive as U+FFFD
     * @param list<Message> $details sent as `google.rpc.Status` in `grpc-status-details-bin`; on the
     *     client's side `Weft\Protobuf\WellKnown\Any`
     * @param array<string, string|list<string>> $metadata trailing metadata
     *
     * @throws \TypeError a detail is no message of a class that `protoc-gen-weft` has generated
     */
    public function __construct(
        public readonly Status $status,
        string $message = '',
        public readonly array $details = [],
        public readonly array $metadata = [],
        ?\Throwable $previous = null,
    ) {
        if ($status === Status::Ok) {
            throw new \ValueError("A call that ends with Ok has not failed: return its answer instead of throwing \"$message\"");
        }
        $others = \array_filter($details, static fn(mixed $detail): bool => !$detail instanceof Message);
        if ($others !== []) {
            throw new \TypeError('A detail of a status must be a Weft\Protobuf\Message, got ' . \get_debug_type(\reset($others)));
        }
        parent::__construct($message, $status->value, $previous);
    }

    /**
     * @internal
     *
     * @return array<string, string|list<string>>
     */
    public function trailers(): array
    {
        return $this->details === [] ? $this->metadata : $this->metadata + [Details::NAME => Details::encode($this)];
    }
}
