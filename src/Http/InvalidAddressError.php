<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Exception;
use Weft\Internal\Documented;

/** The address to listen on is none. */
final class InvalidAddressError extends \ValueError implements Exception
{
    use Documented;
}
