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
    /** As long as the message that is sent beside the details. */
    private const MESSAGE_BYTES = 2_048;

    public static function encode(StatusException $exception): string
    {
        $details = \array_map(static fn(Message $detail): Any => $detail instanceof Any ? $detail : Any::pack($detail), $exception->details);

        // Bytes that are not UTF-8 are replaced, as in `grpc-message`.
        $message = (string) \json_decode((string) \json_encode($exception->getMessage(), \JSON_INVALID_UTF8_SUBSTITUTE));

        return Codec::encode(new RpcStatus(code: $exception->status->value, message: self::cut($message), details: $details));
    }

    /** Cuts a long message at a character, as `grpc-message` is cut. */
    private static function cut(string $message): string
    {
        $length = \strlen($message);
        if ($length <= self::MESSAGE_BYTES) {
            return $message;
        }
        $note = " [cut, the message has $length bytes]";
        $kept = \substr($message, 0, self::MESSAGE_BYTES - \strlen($note));

        return (string) \preg_replace('/[\xC0-\xFF][\x80-\xBF]*$/D', '', $kept) . $note;
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
