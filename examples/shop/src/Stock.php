<?php

declare(strict_types=1);

namespace Weft\Examples\Shop;

use Weft\Bus\EventListener;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/** Counts what was sold. A message that arrives twice is counted once. */
final class Stock
{
    public function __construct(private readonly Database $database)
    {
    }

    #[EventListener]
    public function sold(OrderPlaced $event, Transaction $transaction): void
    {
        $transaction->execute(
            'INSERT INTO stock (item, sold) VALUES (?, ?) ON CONFLICT (item) DO UPDATE SET sold = stock.sold + excluded.sold',
            [$event->item, $event->quantity],
        );
    }

    /** @return array<string, int> sold quantity by item */
    public function soldByItem(): array
    {
        return \array_column($this->database->execute('SELECT item, sold FROM stock ORDER BY item')->rows(), 'sold', 'item');
    }
}
