<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

/** How the example stores people: the values of its variable INSERTS. */
enum Inserts: string
{
    case Single = 'single';
    case Shared = 'shared';

    public function title(): string
    {
        return match ($this) {
            self::Single => 'inserts one by one',
            self::Shared => 'inserts that share statements',
        };
    }
}
