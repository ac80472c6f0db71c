<?php

declare(strict_types=1);

namespace App\Message;

/** Asks for a customer to be welcomed. */
final class Welcome
{
    public function __construct(public readonly int $customer)
    {
    }
}
