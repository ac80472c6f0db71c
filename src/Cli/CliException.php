<?php

declare(strict_types=1);

namespace Weft\Cli;

use Weft\Exception;

/** A command cannot do its work. The message says why. */
abstract class CliException extends \RuntimeException implements Exception
{
}
