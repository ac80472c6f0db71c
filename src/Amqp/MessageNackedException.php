<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The broker could not take responsibility for a message (basic.nack), for instance because a queue is full. */
final class MessageNackedException extends AmqpException
{
}
