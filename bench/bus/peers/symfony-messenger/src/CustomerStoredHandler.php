<?php

declare(strict_types=1);

namespace App;

final class CustomerStoredHandler
{
    public int $handled = 0;

    public function __invoke(CustomerStored $event): void
    {
        ++$this->handled;
    }
}
