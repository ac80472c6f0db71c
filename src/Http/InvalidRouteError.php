<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Exception;
use Weft\Internal\Documented;

/** A route cannot be registered: its path, its name or the signature of its handler is wrong, or another route takes all its requests. */
final class InvalidRouteError extends \ValueError implements Exception
{
    use Documented;
}
