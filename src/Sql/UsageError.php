<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\Exception;

/** The caller broke the rules of an object, such as using a transaction after its end. */
final class UsageError extends \Error implements Exception
{
}
