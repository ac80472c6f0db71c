<?php

declare(strict_types=1);

namespace Weft\Bench\Bus\Weft;

use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Sql\Transaction;

final class Customers
{
    public int $commands = 0;
    public int $events = 0;
    /** Concurrency lets the first events overtake the last commands. */
    public int $eventsBeforeLastCommand = 0;
    public float $lastCommandAt = 0.0;

    public function __construct(private readonly int $total)
    {
    }

    #[CommandHandler]
    public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
    {
        $transaction->execute(
            'INSERT INTO customers (id, name, email) VALUES (?, ?, ?)',
            [$command->id, $command->name, $command->email],
        );
        $context->publish(new CustomerStored($command->id));
        if (++$this->commands === $this->total) {
            $this->lastCommandAt = \microtime(true);
            $this->eventsBeforeLastCommand = $this->events;
        }
    }

    #[EventListener]
    public function stored(CustomerStored $event): void
    {
        ++$this->events;
    }
}
