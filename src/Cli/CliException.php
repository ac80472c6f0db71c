<?php

declare(strict_types=1);

namespace Weft\Cli;

use Weft\Exception;
use Weft\Internal\Documented;

/** A command failed. The message says why. */
abstract class CliException extends \RuntimeException implements Exception
{
    use Documented;
}
