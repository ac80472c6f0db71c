<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

use function Weft\delay;

/** Holds tasks back until so many have come: a client that blocked the process would keep the others from coming. */
final class Gathering
{
    /** How many have come. */
    public int $count = 0;

    public function __construct(private readonly int $size)
    {
    }

    public function wait(): void
    {
        for ($this->count++; $this->count < $this->size;) {
            delay(0.001);
        }
    }
}
