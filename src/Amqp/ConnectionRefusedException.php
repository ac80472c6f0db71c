<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** Connection refused, or address unreachable. */
final class ConnectionRefusedException extends ConnectionException
{
}
