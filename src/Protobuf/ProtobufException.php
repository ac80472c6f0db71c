<?php

declare(strict_types=1);

namespace Weft\Protobuf;

use Weft\Exception;

/** A message, or the class of one, is not what it should be. Catch a subclass for the cause. */
abstract class ProtobufException extends \RuntimeException implements Exception
{
}
