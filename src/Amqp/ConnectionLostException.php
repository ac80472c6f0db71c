<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The connection broke; it is being restored in the background. */
final class ConnectionLostException extends AmqpException
{
}
