<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Exception;

/** Marks what this noun throws. */
interface GrpcException extends Exception
{
}
