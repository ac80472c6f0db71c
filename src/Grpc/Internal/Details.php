<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Rpc\Status as RpcStatus;
use Weft\Grpc\StatusException;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingFailed;
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
        $details = \array_map(static fn(object $detail): Any => $detail instanceof Any ? $detail : Any::pack($detail), $exception->details);

        return Codec::encode(new RpcStatus(code: $exception->status->value, message: $exception->getMessage(), details: $details));
    }

    /** @return list<Any> what a server said; empty where that is no `google.rpc.Status` */
    public static function decode(string $bytes): array
    {
        try {
            return Codec::decode(RpcStatus::class, $bytes)->details;
        } catch (DecodingFailed) {
            return [];
        }
    }
}
