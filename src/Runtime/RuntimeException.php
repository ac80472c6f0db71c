<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Exception;
use Weft\Internal\Documented;

/** A failure of the runtime or of a task. Catch a subclass for the cause. */
abstract class RuntimeException extends \RuntimeException implements Exception
{
    use Documented;
}
