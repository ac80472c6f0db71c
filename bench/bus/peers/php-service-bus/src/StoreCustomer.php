<?php

declare(strict_types=1);

namespace App;

final class StoreCustomer
{
    public function __construct(
        public readonly string $id,
        public readonly string $name,
        public readonly string $email,
    ) {
    }
}
