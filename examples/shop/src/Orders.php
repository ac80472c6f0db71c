<?php

declare(strict_types=1);

namespace Weft\Examples\Shop;

use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/** Takes orders, and knows them. */
final class Orders
{
    public function __construct(private readonly Database $database)
    {
    }

    /** The row and the event are one transaction: there is never one without the other. */
    #[CommandHandler]
    public function place(PlaceOrder $command, Transaction $transaction, Context $context): void
    {
        $transaction->execute('INSERT INTO orders (id, item, quantity) VALUES (?, ?, ?)', [$command->id, $command->item, $command->quantity]);
        $context->publish(new OrderPlaced($command->id, $command->item, $command->quantity));
    }

    /** @return array{id: string, item: string, quantity: int}|null */
    public function find(string $id): ?array
    {
        return $this->database->execute('SELECT id, item, quantity FROM orders WHERE id = ?', [$id])->first();
    }
}
