<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Exception;

/** The caller broke the rules of an object, such as a header of a type that AMQP does not have. */
final class UsageError extends \Error implements Exception
{
}
