<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\Serializer;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\EncodingException;
use Weft\Protobuf\InvalidSchemaException;

/**
 * Protocol Buffers. The format of every generated class, without being chosen: `$bus->publish($order)` with a class of `weft
 * proto:generate` is enough. Its type name is that of the .proto file, such as `shop.v1.OrderPlaced`.
 */
final class Protobuf implements Serializer
{
    public function contentType(): string
    {
        return 'application/protobuf';
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        try {
            return $envelope->with(body: Codec::encode($message));
        } catch (EncodingException | InvalidSchemaException $exception) {
            throw MessageEncodingException::because($message::class, $exception->getMessage(), $exception);
        }
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        try {
            return Codec::decode($class, $envelope->body);
        } catch (DecodingException | InvalidSchemaException $exception) {
            throw MessageDecodingException::because($class, $exception->getMessage(), $exception);
        }
    }
}
