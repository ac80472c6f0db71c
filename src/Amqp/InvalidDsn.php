<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Exception;

/** The DSN cannot be understood. The message shows it without its password. */
final class InvalidDsn extends \ValueError implements Exception
{
}
