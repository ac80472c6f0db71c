<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Exception;

/** An object was given as a service that is none, or the same service twice. */
final class InvalidServiceError extends \ValueError implements Exception
{
}
