<?php

declare(strict_types=1);

namespace Weft;

use Weft\Internal\Documented;

/** A DSN that cannot be parsed. The message shows it without its password. */
final class InvalidDsnError extends \ValueError implements Exception
{
    use Documented;
}
