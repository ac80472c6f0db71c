<?php

declare(strict_types=1);

namespace App;

/** The command: greet somebody. */
final class Greet
{
    public function __construct(public readonly string $id, public readonly string $name)
    {
    }
}
