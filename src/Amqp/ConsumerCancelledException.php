<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The broker ended a consumer, usually because its queue was deleted. */
final class ConsumerCancelledException extends AmqpException
{
}
