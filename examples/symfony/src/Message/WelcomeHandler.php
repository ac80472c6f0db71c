<?php

declare(strict_types=1);

namespace App\Message;

use App\Entities;
use App\Entity\Customer;
use Symfony\Component\Messenger\Attribute\AsMessageHandler;

#[AsMessageHandler]
final class WelcomeHandler
{
    public function __construct(private readonly Entities $entities)
    {
    }

    public function __invoke(Welcome $message): void
    {
        $customer = $this->entities->manager()->find(Customer::class, $message->customer);
        if ($customer !== null) {
            $customer->welcomed = true;
            $this->entities->manager()->flush();
        }
    }
}
