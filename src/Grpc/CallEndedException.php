<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** A message was sent for a call that has ended: it was answered, cancelled, or is past its deadline. */
final class CallEndedException extends GrpcException
{
}
