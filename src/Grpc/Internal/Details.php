<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Rpc\Status as RpcStatus;
use Weft\Grpc\StatusException;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\Message;
use Weft\Protobuf\WellKnown\Any;

/**
 * `google.rpc.Status` in trailing metadata.
 *
 * @internal
 */
final class Details
{
    public const NAME = 'grpc-status-details-bin';

    public static function encode(StatusException $exception): string
    {
        $details = \array_map(static fn(Message $detail): Any => $detail instanceof Any ? $detail : Any::pack($detail), $exception->details);

        // Bytes that are not UTF-8 are replaced, as in `grpc-message`.
        $message = (string) \json_decode((string) \json_encode($exception->getMessage(), \JSON_INVALID_UTF8_SUBSTITUTE));

        return Codec::encode(new RpcStatus(code: $exception->status->value, message: $message, details: $details));
    }

    /** @return list<Any> the details sent by a server; empty if they are not a `google.rpc.Status` */
    public static function decode(string $bytes): array
    {
        try {
            return Codec::decode(RpcStatus::class, $bytes)->details;
        } catch (DecodingException) {
            return [];
        }
    }
}
