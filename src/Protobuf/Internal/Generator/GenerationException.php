<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\ProtobufException;

/**
 * A .proto file that no PHP classes can be made of. The message names the file and the symbol.
 *
 * @internal
 */
final class GenerationException extends ProtobufException
{
}
