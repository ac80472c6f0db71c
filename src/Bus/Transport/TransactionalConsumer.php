<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Sql\Database;
use Weft\Sql\Transaction;

/** A consumer whose broker can live in the handlers' own database: then effect, messages and ack commit as one. */
interface TransactionalConsumer extends Consumer
{
    /** Whether transactions of this database reach the broker's tables. */
    public function sharesDatabase(Database $database): bool;

    /**
     * Whether the queue may hold a message twice under one id, because a sender whose connection broke could not know that the first
     * had arrived. Then the bus recognises what it has handled, as with a broker elsewhere.
     */
    public function mayDuplicate(): bool;

    /**
     * Adds publishing and acknowledgement to a transaction of a shared database. After its commit {@see settled()} must be
     * called; after a rollback the delivery is still unacknowledged.
     *
     * @param list<Outgoing> $publish
     */
    public function enlist(Transaction $transaction, Delivery $delivery, array $publish): void;

    /** Notes that the transaction given to {@see enlist()} has committed. */
    public function settled(Delivery $delivery): void;
}
