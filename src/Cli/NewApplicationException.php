<?php

declare(strict_types=1);

namespace Weft\Cli;

/** `weft new` could not write the application. */
final class NewApplicationException extends CliException
{
}
