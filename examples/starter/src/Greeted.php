<?php

declare(strict_types=1);

namespace App;

/** The event: somebody was greeted. */
final class Greeted
{
    public function __construct(public readonly string $id, public readonly string $name)
    {
    }
}
