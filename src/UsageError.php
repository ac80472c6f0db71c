<?php

declare(strict_types=1);

namespace Weft;

use Weft\Internal\Documented;

/** The caller broke the rules of an object, such as using a transaction after its end. */
class UsageError extends \Error implements Exception
{
    use Documented;
}
