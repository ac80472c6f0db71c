<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/** A message holds what its fields' types cannot express. Names the message, the field and the type that was found. */
final class EncodingException extends ProtobufException
{
}
