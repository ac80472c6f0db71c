<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Exception;

/** The address to listen on is none. */
final class InvalidAddressError extends \ValueError implements Exception
{
}
