<?php

declare(strict_types=1);

namespace Weft\Cli;

use Weft\Exception;

/** A command failed. The message says why. */
abstract class CliException extends \RuntimeException implements Exception
{
}
