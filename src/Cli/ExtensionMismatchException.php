<?php

declare(strict_types=1);

namespace Weft\Cli;

/** The command needs the extension `weft`, and the loaded one has another version or another interface hash than the library. */
final class ExtensionMismatchException extends CliException
{
}
