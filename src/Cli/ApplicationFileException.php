<?php

declare(strict_types=1);

namespace Weft\Cli;

/** The file that a command was given does not exist or contains no application. */
final class ApplicationFileException extends CliException
{
}
