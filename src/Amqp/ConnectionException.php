<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** A connection could not be made. */
class ConnectionException extends AmqpException
{
}
