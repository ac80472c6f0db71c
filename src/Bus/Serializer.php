<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Serializer\Envelope;
use Weft\Bus\Serializer\Normalizer;

/**
 * A format of messages: turns objects into bytes and back.
 *
 * The bus needs none for its own format, JSON. Choose another one for a message class with {@see SerializedBy} or
 * {@see MessageOptions::$serializers}, and for the messages of a queue with {@see MessageOptions::$queueSerializers}. A format whose messages name
 * their type themselves implements {@see EnvelopeSerializer}.
 *
 * ```php
 * final class MessagePack implements Serializer
 * {
 *     public function contentType(): string
 *     {
 *         return 'application/vnd.msgpack';
 *     }
 *
 *     public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
 *     {
 *         return $envelope->with(body: \msgpack_pack($normalizer->normalize($message)));
 *     }
 *
 *     public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
 *     {
 *         return $normalizer->denormalize($class, (array) \msgpack_unpack($envelope->body));
 *     }
 * }
 * ```
 */
interface Serializer
{
    /** The media type of what {@see encode()} writes, such as `application/json`; sent as the header `content-type`. */
    public function contentType(): string;

    /**
     * Writes the body of a message, and headers and type name if the format has its own.
     *
     * @param Envelope $envelope with the type name and the headers that the bus sends ({@see Header}), and without a body. The message id
     *                           stays, even if the format removes others
     *
     * @throws MessageEncodingException other exceptions are wrapped in one
     */
    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope;

    /**
     * Reads a message. One that cannot be read is moved to the dead-letter queue with its original bytes.
     *
     * @template T of object
     *
     * @param Envelope        $envelope as it was received, or as {@see EnvelopeSerializer::open()} returned it
     * @param class-string<T> $class    a class that is registered with the bus
     * @return T
     *
     * @throws MessageDecodingException other exceptions are wrapped in one
     */
    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object;
}
