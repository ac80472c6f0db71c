<?php

declare(strict_types=1);

namespace Weft\Examples\Shop;

/** The body of `POST /orders`. */
final class NewOrder
{
    public function __construct(public readonly string $item, public readonly int $quantity)
    {
    }
}
