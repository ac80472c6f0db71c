<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** The request was understood, and a rule excludes it: 422. */
final class Unacceptable extends \RuntimeException
{
    public static function taken(string $nickname): self
    {
        return new self("The nickname {$nickname} is taken");
    }
}
