<?php

declare(strict_types=1);

namespace App;

use Amp\Promise;
use ServiceBus\Common\Context\ServiceBusContext;
use ServiceBus\Endpoint\Options\DefaultDeliveryOptions;
use ServiceBus\Services\Attributes\CommandHandler;
use ServiceBus\Services\Attributes\EventListener;
use ServiceBus\Storage\Common\DatabaseAdapter;
use ServiceBus\Storage\Common\QueryExecutor;

use function Amp\call;

/** The work of the library's own comparison. Its container makes the object, so what it needs is handed over once for all. */
final class Customers
{
    public static Progress $progress;
    public static DefaultDeliveryOptions $delivery;

    #[CommandHandler]
    public function store(StoreCustomer $command, ServiceBusContext $context, DatabaseAdapter $database): Promise
    {
        return call(static function () use ($command, $context, $database): \Generator {
            yield $database->transactional(static function (QueryExecutor $transaction) use ($command, $context): \Generator {
                yield $transaction->execute(
                    'INSERT INTO customers (id, name, email) VALUES (?, ?, ?)',
                    [$command->id, $command->name, $command->email],
                );
                yield $context->delivery(new CustomerStored($command->id), self::$delivery);
            });
            self::$progress->commandHandled();
        });
    }

    #[EventListener]
    public function stored(CustomerStored $event, ServiceBusContext $context): void
    {
        self::$progress->eventHandled();
    }
}
