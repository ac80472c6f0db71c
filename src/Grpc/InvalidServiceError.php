<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Exception;
use Weft\Internal\Documented;

/** An object that implements no service, or a service that is registered twice. */
final class InvalidServiceError extends \ValueError implements Exception
{
    use Documented;
}
