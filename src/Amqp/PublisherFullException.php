<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The publisher's window or buffer has no room. */
final class PublisherFullException extends AmqpException
{
}
