<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The host name has no address. */
final class HostNotFoundException extends ConnectionException
{
}
