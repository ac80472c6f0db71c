<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The broker did not answer within the connect timeout. */
final class ConnectionTimeoutException extends ConnectionException
{
}
