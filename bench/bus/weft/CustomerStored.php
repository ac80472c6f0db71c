<?php

declare(strict_types=1);

namespace Weft\Bench\Bus\Weft;

final class CustomerStored
{
    public function __construct(public readonly string $id)
    {
    }
}
