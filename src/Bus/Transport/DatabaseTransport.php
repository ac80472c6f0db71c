<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/** A transport that stores its messages in tables, so that transactions of the same database can publish. */
interface DatabaseTransport extends Transport
{
    /** Whether transactions of this database reach the broker's tables. */
    public function sharesDatabase(Database $database): bool;

    /**
     * Publishes as part of a transaction of a shared database.
     *
     * @param string|null    $queue    only into this queue; null for all queues bound to the type
     * @param list<Outgoing> $messages
     *
     * @throws \Weft\Bus\UnroutableMessageException|\Weft\Bus\UndefinedQueueException
     */
    public function publishIn(Transaction $transaction, ?string $queue, array $messages): void;

    /** The database with the broker's tables. */
    public function database(): Database;
}
