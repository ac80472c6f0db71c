<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Documented;

/** A method marked as a handler has an invalid signature. */
final class InvalidHandlerError extends \Error implements \Weft\Exception
{
    use Documented;
}
