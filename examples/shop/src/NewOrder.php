<?php

declare(strict_types=1);

namespace Weft\Examples\Shop;

use Symfony\Component\Validator\Constraints as Assert;
use Weft\Validation\Validate;

/** The body of `POST /orders`. */
#[Validate]
final class NewOrder
{
    public function __construct(
        #[Assert\Length(min: 1, max: 100)]
        public readonly string $item,
        #[Assert\Positive]
        public readonly int $quantity,
    ) {
    }
}
