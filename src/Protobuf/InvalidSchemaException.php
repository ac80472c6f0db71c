<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/** A class that is no generated message, or no longer the one its descriptor describes: generate it again. */
final class InvalidSchemaException extends ProtobufException
{
}
