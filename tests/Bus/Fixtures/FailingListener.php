<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Weft\Bus\EventListener;

final class FailingListener
{
    public function __construct(private readonly string $message) {}

    #[EventListener]
    public function stored(CustomerStored $event): void
    {
        throw new \DomainException($this->message);
    }
}
