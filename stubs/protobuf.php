<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * The bytes of a message; `Weft\Protobuf\Codec::encode()` for messages of `Weft\Protobuf\Message` only.
 *
 * @param object $message an instance of a generated class
 *
 * @throws \Weft\Protobuf\EncodingException if a field holds what its type cannot express
 * @throws \Weft\Protobuf\InvalidSchemaException if the class is no generated one, or was changed since
 */
function protobufEncode(object $message): string
{
}

/**
 * A new message with what the bytes hold; `Weft\Protobuf\Codec::decode()` for messages of `Weft\Protobuf\Message` only. No
 * constructor runs. Messages may be nested 100 deep.
 *
 * @template T of object
 *
 * @param class-string<T> $class a generated class
 * @param int|null $memory bytes that the values may take, as an estimate; null is unlimited
 *
 * @return T
 *
 * @throws \Weft\Protobuf\DecodingException if the bytes are no such message, or take more memory
 * @throws \Weft\Protobuf\InvalidSchemaException if the class is no generated one, or was changed since
 */
function protobufDecode(string $class, string $bytes, ?int $memory = null): object
{
}

/**
 * A message as JSON; `Weft\Protobuf\Json::encode()` for messages of `Weft\Protobuf\Message` only.
 *
 * @throws \Weft\Protobuf\EncodingException if a field holds what its type, or JSON, cannot express
 * @throws \Weft\Protobuf\InvalidSchemaException if the class is no generated one, or was changed since
 */
function protobufToJson(object $message): string
{
}

/**
 * A new message with what the JSON says; `Weft\Protobuf\Json::decode()` for messages of `Weft\Protobuf\Message` only.
 *
 * @template T of object
 *
 * @param class-string<T> $class a generated class
 * @param bool $lenient whether keys and names of enum values that are not known are passed over
 * @param int|null $memory bytes that the values may take, as an estimate; null is unlimited
 *
 * @return T
 *
 * @throws \Weft\Protobuf\DecodingException if the JSON is no such message, or takes more memory
 * @throws \Weft\Protobuf\InvalidSchemaException if the class is no generated one, or was changed since
 */
function protobufFromJson(string $class, string $json, bool $lenient, ?int $memory = null): object
{
}
