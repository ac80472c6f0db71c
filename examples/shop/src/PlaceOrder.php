<?php

declare(strict_types=1);

namespace Weft\Examples\Shop;

/** A command: a request to do something. */
final class PlaceOrder
{
    public function __construct(public readonly string $id, public readonly string $item, public readonly int $quantity)
    {
    }
}
