<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

/** Event: the customer is in the database. */
final class CustomerStored
{
    public function __construct(public readonly string $id)
    {
    }
}
