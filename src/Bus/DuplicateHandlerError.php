<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Documented;

/** A command has a second handler, a second object of one class is registered, or a class is used as both command and event. */
final class DuplicateHandlerError extends \Error implements \Weft\Exception
{
    use Documented;
}
