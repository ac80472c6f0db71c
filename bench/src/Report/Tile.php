<?php

declare(strict_types=1);

namespace Weft\Bench\Report;

/** What a benchmark came to, in one number and two phrases. */
final class Tile
{
    /**
     * @param string $value such as 1.59×
     * @param string $claim what that is
     * @param string $detail the figures it is made of
     */
    public function __construct(public readonly string $value, public readonly string $claim, public readonly string $detail)
    {
    }
}
