<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The connection was closed and will not come back. */
final class ConnectionClosedException extends AmqpException
{
}
