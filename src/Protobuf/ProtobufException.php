<?php

declare(strict_types=1);

namespace Weft\Protobuf;

use Weft\Exception;
use Weft\Internal\Documented;

/** A message or its class is invalid. Subclasses name the cause. */
abstract class ProtobufException extends \RuntimeException implements Exception
{
    use Documented;
}
