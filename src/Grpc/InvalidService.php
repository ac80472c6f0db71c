<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** An object was given as a service that is none, or the same service twice. */
final class InvalidService extends \ValueError implements GrpcException
{
}
