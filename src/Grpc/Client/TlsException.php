<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\GrpcException;

/** A certificate or key of a channel cannot be used. */
final class TlsException extends GrpcException
{
}
