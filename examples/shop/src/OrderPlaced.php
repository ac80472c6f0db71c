<?php

declare(strict_types=1);

namespace Weft\Examples\Shop;

/** An event: this has happened. */
final class OrderPlaced
{
    public function __construct(public readonly string $id, public readonly string $item, public readonly int $quantity)
    {
    }
}
