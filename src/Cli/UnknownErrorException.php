<?php

declare(strict_types=1);

namespace Weft\Cli;

/** `weft explain` was given a name that no page has. */
final class UnknownErrorException extends CliException
{
    /** @param list<string> $similar */
    public function __construct(string $name, array $similar)
    {
        parent::__construct("There is no page about \"{$name}\": `weft explain` lists all" . ($similar === [] ? '' : '. Similar: ' . \implode(', ', $similar)));
    }
}
