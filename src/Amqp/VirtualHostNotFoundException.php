<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The virtual host does not exist, or the user may not use it. */
final class VirtualHostNotFoundException extends ConnectionException
{
}
