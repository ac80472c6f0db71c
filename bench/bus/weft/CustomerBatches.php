<?php

declare(strict_types=1);

namespace Weft\Bench\Bus\Weft;

use Weft\Bus\Batch;
use Weft\Bus\BatchItem;
use Weft\Bus\CommandHandler;
use Weft\Bus\EventListener;
use Weft\Sql\Transaction;

/** The work of Customers, many messages at a time. */
final class CustomerBatches
{
    public int $commands = 0;
    public int $events = 0;
    public int $eventsBeforeLastCommand = 0;
    public float $lastCommandAt = 0.0;

    public function __construct(private readonly int $total)
    {
    }

    /** @param list<BatchItem<StoreCustomer>> $items */
    #[CommandHandler]
    #[Batch(StoreCustomer::class, size: 100, window: 0.01)]
    public function store(array $items, Transaction $transaction): void
    {
        foreach ($items as $item) {
            $command = $item->message;
            $transaction->execute(
                'INSERT INTO customers (id, name, email) VALUES (?, ?, ?)',
                [$command->id, $command->name, $command->email],
            );
            $item->context->publish(new CustomerStored($command->id));
        }
        $this->commands += \count($items);
        if ($this->commands === $this->total) {
            $this->lastCommandAt = \microtime(true);
            $this->eventsBeforeLastCommand = $this->events;
        }
    }

    /** @param list<BatchItem<CustomerStored>> $items */
    #[EventListener]
    #[Batch(CustomerStored::class, size: 100, window: 0.01)]
    public function stored(array $items): void
    {
        $this->events += \count($items);
    }
}
