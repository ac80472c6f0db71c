<?php

declare(strict_types=1);

namespace App;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\Statement;
use Symfony\Component\Messenger\MessageBusInterface;

final class StoreCustomerHandler
{
    public int $handled = 0;

    private ?Statement $insert = null;

    public function __construct(
        private readonly Connection $database,
        private readonly MessageBusInterface $bus,
        private readonly Delivery $delivery,
    ) {
    }

    public function __invoke(StoreCustomer $command): void
    {
        $this->database->transactional(function () use ($command): void {
            $this->insert ??= $this->database->prepare('INSERT INTO customers (id, name, email) VALUES (?, ?, ?)');
            $this->insert->executeStatement([$command->id, $command->name, $command->email]);
            $this->bus->dispatch(new CustomerStored($command->id), [$this->delivery->stamp()]);
        });
        ++$this->handled;
    }
}
