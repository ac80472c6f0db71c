<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/** Bytes, or JSON, that are not the message they should be. Names the message and the field, never a value. */
final class DecodingException extends ProtobufException
{
}
