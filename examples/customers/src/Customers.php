<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Sql\Transaction;

/**
 * The application: what happens to a command, and who listens to its event.
 */
final class Customers
{
    /** @var array<string, int> how often the event of each customer arrived, by id */
    public array $stored = [];

    /** Commits when it returns; the event leaves only then. */
    #[CommandHandler]
    public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
    {
        $transaction->execute(
            'INSERT INTO customers (id, name, email) VALUES (?, ?, ?)',
            [$command->id, $command->name, $command->email],
        );
        $context->publish(new CustomerStored($command->id));
    }

    #[EventListener]
    public function stored(CustomerStored $event): void
    {
        $this->stored[$event->id] = ($this->stored[$event->id] ?? 0) + 1;
    }
}
