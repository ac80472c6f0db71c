<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Exception;
use Weft\Internal\Documented;

/** A failure of an HTTP server or of one of its requests. Catch a subclass for the cause. */
abstract class ServerException extends \RuntimeException implements Exception
{
    use Documented;
}
