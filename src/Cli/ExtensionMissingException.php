<?php

declare(strict_types=1);

namespace Weft\Cli;

/** The command needs the extension `weft`, and this PHP has not loaded it. */
final class ExtensionMissingException extends CliException
{
    public function __construct(string $command)
    {
        $ini = \php_ini_loaded_file() ?: 'php.ini (none is loaded)';
        parent::__construct(
            "The command \"$command\" needs the extension weft, which " . \PHP_BINARY . " has not loaded. "
            . "Add extension=/path/to/libweft.so to $ini, or in a source checkout run `make build`. `weft doctor` checks the rest.",
        );
    }
}
