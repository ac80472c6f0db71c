<?php

declare(strict_types=1);

namespace Weft\Protobuf;

/** A class is not a generated message class, or it no longer matches its descriptor: generate it again. */
final class InvalidSchemaException extends ProtobufException
{
}
