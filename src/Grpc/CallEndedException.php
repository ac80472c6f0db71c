<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** A message was sent on a call that has ended: it was completed or cancelled, or its deadline has passed. */
final class CallEndedException extends GrpcException
{
}
