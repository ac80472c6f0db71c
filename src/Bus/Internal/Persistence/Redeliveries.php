<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Pool\PoolException;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * Counts redeliveries for all workers together. Only redelivered messages have a row: a first delivery costs nothing, because the broker
 * marks the next one.
 *
 * @internal
 */
final class Redeliveries
{
    public function __construct(
        private readonly Database $database,
        private readonly LoggerInterface $logger,
    ) {}

    /**
     * The count is durable when this returns, because the process may crash next.
     *
     * @return int how often it was called for the message, this time included
     * @throws SqlException
     */
    public function note(string $id, int $consumer): int
    {
        // One statement: in MariaDB, transactions that look for a missing row before they insert it deadlock on the gap.
        return $this->database->transaction(function (Transaction $transaction) use ($id, $consumer): int {
            $now = (new Dialect($this->database))->seconds();
            // MySQL warns of VALUES(updated_at), and MariaDB does not know the form that replaces it.
            $transaction->execute(
                "INSERT INTO weft_redeliveries (message_id, consumer, redeliveries, updated_at) VALUES (?, ?, 1, {$now}) " . ($this->database->driver() === Driver::Mysql
                    ? "ON DUPLICATE KEY UPDATE redeliveries = redeliveries + 1, updated_at = {$now}"
                    : 'ON CONFLICT (message_id, consumer) DO UPDATE SET redeliveries = weft_redeliveries.redeliveries + 1, updated_at = excluded.updated_at'),
                [$id, $consumer],
            );

            return $transaction->execute('SELECT redeliveries FROM weft_redeliveries WHERE message_id = ? AND consumer = ?', [$id, $consumer])->value();
        });
    }

    public function of(string $id, int $consumer): int
    {
        return $this->database->execute('SELECT redeliveries FROM weft_redeliveries WHERE message_id = ? AND consumer = ?', [$id, $consumer])->value() ?? 0;
    }

    public function forget(string $id, int $consumer): void
    {
        try {
            $this->database->execute('DELETE FROM weft_redeliveries WHERE message_id = ? AND consumer = ?', [$id, $consumer]);
        } catch (PoolException | SqlException $exception) {
            // The row is deleted after the retention; until then it belongs to a message that is not redelivered.
            $this->logger->warning('The redelivery count of message {id} could not be deleted: {error}', ['id' => $id, 'error' => $exception->getMessage(), 'exception' => $exception]);
        }
    }
}
