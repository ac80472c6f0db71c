<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos\Work;

final class Transferred
{
    public function __construct(public readonly int $number)
    {
    }
}
