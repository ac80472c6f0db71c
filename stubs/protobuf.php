<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * The bytes of a message; `Weft\Protobuf\Codec::encode()` for messages of `Weft\Protobuf\Message` only.
 *
 * @param object $message an instance of a generated class
 *
 * @throws \Weft\Protobuf\EncodingFailed if a field holds what its type cannot express
 * @throws \Weft\Protobuf\InvalidSchema if the class is no generated one, or was changed since
 */
function protobufEncode(object $message): string
{
}

/**
 * A new message with what the bytes hold; `Weft\Protobuf\Codec::decode()` for messages of `Weft\Protobuf\Message` only. No
 * constructor runs. Messages may be nested 100 deep.
 *
 * @param string $class name of a generated class
 *
 * @throws \Weft\Protobuf\DecodingFailed if the bytes are no such message
 * @throws \Weft\Protobuf\InvalidSchema if the class is no generated one, or was changed since
 */
function protobufDecode(string $class, string $bytes): object
{
}
