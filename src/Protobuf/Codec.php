<?php

declare(strict_types=1);

namespace Weft\Protobuf;

use Google\Protobuf\Internal\Message as GoogleMessage;

use function Weft\Native\protobufDecode;
use function Weft\Native\protobufEncode;

/**
 * Encodes messages to bytes and back: instances of classes that Weft generates, and of those that `protoc --php_out` generates for
 * google/protobuf (with or without its C extension), whose own code is used.
 */
final class Codec
{
    /**
     * @param object $message an instance of a generated class
     *
     * @return string the same bytes for the same message, fields in the order of their numbers
     *
     * @throws EncodingException if a field holds what its type cannot express; it names the field and the value's type
     * @throws InvalidSchemaException the class is not a generated message class, or it was changed after generation
     */
    public static function encode(object $message): string
    {
        return $message instanceof GoogleMessage ? $message->serializeToString() : protobufEncode($message);
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $class a generated class
     * @param int|null $memory bytes that the values of the message may take, as an estimate; null is unlimited. A message of two bytes can become an
     *     object of more than a hundred: set it for bytes of others. gRPC servers and channels do. google/protobuf has no such limit
     *
     * @return T
     *
     * @throws DecodingException the bytes are not such a message, or its values take more memory; the exception names the field
     * @throws InvalidSchemaException the class is not a generated message class, or it was changed after generation
     */
    public static function decode(string $class, string $bytes, ?int $memory = null): object
    {
        // Asked for first: a class that does not exist would be looked for at every call.
        if (\is_subclass_of($class, Message::class) || !\is_subclass_of($class, GoogleMessage::class)) {
            /** @var T */
            return protobufDecode($class, $bytes, $memory);
        }
        /** @var T&GoogleMessage $message */
        $message = new $class;
        try {
            $message->mergeFromString($bytes);
        } catch (\Exception $e) {
            throw new DecodingException("Cannot decode {$class}: {$e->getMessage()}", 0, $e);
        }

        return $message;
    }
}
