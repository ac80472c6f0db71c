<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Pool\PoolException;
use Weft\Sql\Bytes;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * The inbox row of one message and one handler, and the outbox rows of what the handler sends, all in the handler's transaction.
 *
 * The inbox row is inserted without a prior lookup and is pipelined with the handler's first statement, so it costs no round trip. If
 * it exists, its unique key fails the insert and with it the transaction: the duplicate's changes are rolled back.
 *
 * @internal
 */
final class InboxEntry
{
    private const FIND = 'SELECT body_hash FROM weft_inbox WHERE message_id = ? AND consumer = ?';
    private const SEND = OutboxRow::INSERT . '(?, ?, ?, ?, ?, ?)';

    /**
     * @param string $id       of the message; empty when it has none, so that it cannot be recognised
     * @param int    $consumer names queue and handler
     * @param string $now      expression for the current Unix time by the database's clock, which old rows are deleted by
     */
    public function __construct(
        private readonly Database $database,
        private readonly Delivery $delivery,
        private readonly string $id,
        private readonly int $consumer,
        private readonly string $now,
    ) {}

    /**
     * Begins a transaction. For a redelivered message the insert is awaited, so that its handler does not run if it was handled before;
     * otherwise nothing is sent yet.
     *
     * @throws SqlException
     */
    public function open(Transaction $transaction): void
    {
        if ($this->id === '') {
            return;
        }
        $transaction->execute(
            "INSERT INTO weft_inbox (message_id, consumer, body_hash, handled_at) VALUES (?, ?, ?, {$this->now})",
            [$this->id, $this->consumer, self::fingerprint($this->delivery->body)],
        );
        if ($this->delivery->redelivered) {
            $transaction->flush();
        }
    }

    /** @param list<Outgoing> $messages what the handler has sent */
    public function send(Transaction $transaction, array $messages): void
    {
        foreach ($messages as $message) {
            $transaction->execute(self::SEND, OutboxRow::of($message));
        }
    }

    /**
     * Whether the message was handled before. Then this is why its transaction failed, regardless of the first error. Also true when the
     * connection was lost during a commit that took effect.
     *
     * @throws DuplicateMessageIdException when it was another message of the same id
     * @throws SqlException when the database is away and cannot say
     */
    public function wasHandled(): bool
    {
        if ($this->id === '') {
            return false;
        }
        try {
            $handled = $this->database->execute(self::FIND, [$this->id, $this->consumer])->value();
        } catch (PoolException | SqlException $exception) {
            if (DatabaseOutage::isOne($exception)) {
                // The answer is unknown, and a duplicate must not count as a failure.
                throw $exception;
            }

            return false;
        }
        if ($handled !== null && $handled !== self::fingerprint($this->delivery->body)) {
            throw new DuplicateMessageIdException("A message with the id {$this->id} and a different body was handled before");
        }

        return $handled !== null;
    }

    public static function fingerprint(string $body): int
    {
        return \unpack('q', \hash('xxh3', $body, true))[1];
    }
}
