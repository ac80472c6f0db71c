<?php

declare(strict_types=1);

namespace Weft\Protobuf;

use Google\Protobuf\Internal\Message as GoogleMessage;

use function Weft\Native\protobufFromJson;
use function Weft\Native\protobufToJson;

/**
 * Messages to JSON and back by the mapping that proto3 defines: names in camelCase, 64-bit integers as strings, bytes in
 * base64, enums by name, fields that are not set left out. For the same classes as `Codec`.
 */
final class Json
{
    /**
     * @throws EncodingException if a field holds what its type, or JSON, cannot express
     * @throws InvalidSchemaException the class is not a generated message class, or it was changed after generation
     */
    public static function encode(object $message): string
    {
        return $message instanceof GoogleMessage ? $message->serializeToJsonString() : protobufToJson($message);
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $class a generated class
     * @param bool $ignoreUnknown whether keys and names of enum values that are not known are passed over; otherwise they are an error
     * @param int|null $memory bytes that the values of the message may take, as an estimate; null is unlimited. An empty message is three bytes, `{},`,
     *     and becomes an object of 40 bytes and 16 for each field of its class: set it for JSON of others. gRPC servers do. google/protobuf has no such
     *     limit
     *
     * @return T
     *
     * @throws DecodingException the JSON does not represent such a message, or its values take more memory; the exception names the place
     * @throws InvalidSchemaException the class is not a generated message class, or it was changed after generation
     */
    public static function decode(string $class, string $json, bool $ignoreUnknown = false, ?int $memory = null): object
    {
        // Asked for first: a class that does not exist would be looked for at every call.
        if (\is_subclass_of($class, Message::class) || !\is_subclass_of($class, GoogleMessage::class)) {
            /** @var T */
            return protobufFromJson($class, $json, $ignoreUnknown, $memory);
        }
        /** @var T&GoogleMessage $message */
        $message = new $class;
        try {
            $message->mergeFromJsonString($json, $ignoreUnknown);
        } catch (\Exception $e) {
            throw new DecodingException("Cannot decode {$class}: {$e->getMessage()}", 0, $e);
        }

        return $message;
    }
}
