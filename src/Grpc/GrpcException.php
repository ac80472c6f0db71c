<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Exception;
use Weft\Internal\Documented;

/** A failure of a gRPC server or client. Catch a subclass for the cause. */
abstract class GrpcException extends \RuntimeException implements Exception
{
    use Documented;
}
