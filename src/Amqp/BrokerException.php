<?php

declare(strict_types=1);

namespace Weft\Amqp;

/**
 * The broker refused an operation, such as declaring a queue with other arguments than it has, or closed three connections with an error while
 * a message or an operation was unanswered.
 */
final class BrokerException extends AmqpException
{
}
