<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Sql\Database;
use Weft\Sql\Transaction;

/** A consumer whose broker may share the handlers' database: effects, published messages and the acknowledgement then commit together. */
interface TransactionalConsumer extends Consumer
{
    /** Whether transactions of this database reach the broker's tables. */
    public function sharesDatabase(Database $database): bool;

    /**
     * Whether the queue may contain a message twice with one id, because a sender lost its connection before the confirmation. The bus then
     * uses its inbox, as with a separate broker.
     */
    public function mayDuplicate(): bool;

    /**
     * Adds publishing and the acknowledgement to a transaction of a shared database. Call {@see settled()} after its commit; after a rollback
     * the delivery is still unacknowledged.
     *
     * @param list<Outgoing> $publish
     */
    public function enlist(Transaction $transaction, Delivery $delivery, array $publish): void;

    /** Records that the transaction passed to {@see enlist()} has committed. */
    public function settled(Delivery $delivery): void;
}
