<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** A mandatory message reached no queue. */
final class MessageReturnedException extends AmqpException
{
}
