<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** Nothing listens at the address, or it cannot be reached. */
final class ConnectionRefusedException extends ConnectionException
{
}
