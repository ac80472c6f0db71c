<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\BlockedKey;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Header;
use Weft\Bus\Transport\Delivery;
use Weft\Sql\Bytes;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolationException;

/**
 * Blocked keys of ordered messages, and the messages behind them.
 *
 * @internal
 */
final class BlockedKeys
{
    /** Rows that are replayed before the next ones are read, or fewer with large bodies. */
    private const BATCH_SIZE = 100;

    /** Inserts a message if its key is blocked. The lock lets {@see self::forgetQueue()} delete the key either before, or both. */
    private readonly string $add;
    private readonly string $block;

    public function __construct(private readonly Database $database)
    {
        $this->block = (new Dialect($database))->replace('weft_blocked_keys', ['queue', 'order_key', 'message_id', 'blocked_at', 'released'], 2);
        $this->add = 'INSERT INTO weft_blocked_messages (queue, order_key, message_id, type, headers, body)
            SELECT ?, ?, ?, ?, ?, ? FROM weft_blocked_keys WHERE queue = ? AND order_key = ?' . (new Dialect($database))->forShare();
    }

    /** @param string $messageId id of the message that blocks it */
    public function block(string $queue, string $key, string $messageId): void
    {
        $this->database->execute($this->block, [$queue, $key, $messageId, \time(), 0]);
    }

    /** @return bool false when it was not blocked */
    public function release(string $queue, string $key): bool
    {
        return $this->database->execute('UPDATE weft_blocked_keys SET released = 1 WHERE queue = ? AND order_key = ?', [$queue, $key])->affected() > 0;
    }

    /**
     * Releases the key that a message blocks, if it blocks one and none of its listeners waits for a retry, which releases it.
     *
     * @param string $retryId of the row of such a retry
     */
    public function releaseBlockedBy(string $queue, string $messageId, string $retryId): void
    {
        $this->database->execute(
            'UPDATE weft_blocked_keys SET released = 1 WHERE queue = ? AND message_id = ? AND NOT EXISTS (SELECT 1 FROM weft_delayed WHERE id = ?)',
            [$queue, $messageId, $retryId],
        );
    }

    /** Unblocks a key without waiting messages. */
    public function forget(string $queue, string $key): void
    {
        $this->database->execute('DELETE FROM weft_blocked_keys WHERE queue = ? AND order_key = ?', [$queue, $key]);
    }

    /** Whether any key of a queue is blocked. */
    public function anyOf(string $queue): bool
    {
        return $this->database->execute('SELECT 1 FROM weft_blocked_keys WHERE queue = ? LIMIT 1', [$queue])->value() !== null;
    }

    /** @return array<string, string> the id of the message that blocks each key */
    public function blockers(string $queue): array
    {
        /** @var array<string, string> */
        return \array_column($this->database->execute('SELECT order_key, message_id FROM weft_blocked_keys WHERE queue = ?', [$queue])->rows(), 'message_id', 'order_key');
    }

    /** @return list<string> keys that were released and whose messages still wait, the longest blocked first */
    public function released(string $queue): array
    {
        /** @var list<string> */
        return \array_column($this->database->execute('SELECT order_key FROM weft_blocked_keys WHERE queue = ? AND released = 1 ORDER BY blocked_at, order_key', [$queue])->rows(), 'order_key');
    }

    public function isReleased(string $queue, string $key): bool
    {
        return $this->database->execute('SELECT released FROM weft_blocked_keys WHERE queue = ? AND order_key = ?', [$queue, $key])->value() === 1;
    }

    /** @return list<BlockedKey> the longest blocked first */
    public function blocked(string $queue): array
    {
        $rows = $this->database->execute('SELECT k.order_key, k.message_id, k.blocked_at, k.released,
                (SELECT count(*) FROM weft_blocked_messages w WHERE w.queue = k.queue AND w.order_key = k.order_key) AS waiting
            FROM weft_blocked_keys k WHERE k.queue = ? ORDER BY k.blocked_at, k.order_key', [$queue])->rows();

        return \array_map(static fn(array $row): BlockedKey => new BlockedKey(
            $row['order_key'],
            $row['message_id'],
            new \DateTimeImmutable("@{$row['blocked_at']}"),
            $row['waiting'],
            $row['released'] === 1,
        ), $rows);
    }

    /** @return array{int, int} blocked keys of a queue, and the messages behind them; each counted up to {@see Persistence::MAX_COUNT} */
    public function sizes(string $queue): array
    {
        $count = fn(string $table): int => (int) $this->database->execute(
            "SELECT count(*) FROM (SELECT 1 FROM {$table} WHERE queue = ? LIMIT " . Persistence::MAX_COUNT . ') AS counted',
            [$queue],
        )->value();
        $keys = $count('weft_blocked_keys');

        return [$keys, $keys === 0 ? 0 : $count('weft_blocked_messages')];
    }

    /** The number of messages that wait behind the keys of a queue. */
    public function waitingIn(string $queue): int
    {
        return $this->database->execute('SELECT count(*) FROM weft_blocked_messages WHERE queue = ?', [$queue])->value();
    }

    /** Deletes the keys of a queue and the messages behind them. */
    public function forgetQueue(string $queue): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($queue): void {
            $transaction->execute('DELETE FROM weft_blocked_keys WHERE queue = ?', [$queue]);
            $transaction->execute('DELETE FROM weft_blocked_messages WHERE queue = ?', [$queue]);
        });
    }

    /**
     * Appends a message to those that wait for its key. A message that is waiting already keeps its position.
     *
     * @return bool false when the key is not blocked any more, because its queue was deleted: the message does not wait
     *
     * @throws DuplicateMessageIdException when another one of the same id waits
     */
    public function add(string $queue, string $key, Delivery $delivery): bool
    {
        $id = Persistence::idOf($delivery->headers);
        try {
            return $this->database->execute($this->add, [
                $queue, $key, $id, $delivery->type, Headers::encode($delivery->headers), new Bytes($delivery->body), $queue, $key,
            ])->affected() > 0;
        } catch (UniqueViolationException $violation) {
            $body = $this->database->execute('SELECT body FROM weft_blocked_messages WHERE queue = ? AND message_id = ?', [$queue, $id])->value();
            if ($body === null) {
                // It has been handled, or its queue was deleted.
                return $this->add($queue, $key, $delivery);
            }
            if ($body !== $delivery->body) {
                throw new DuplicateMessageIdException("A message with the id {$id} and a different body already waits for the key {$key}", $violation);
            }

            // It was stored before, and its acknowledgement was lost.
            return true;
        }
    }

    /** @return list<Delivery> the first that wait, with tags below 0: no broker gives such */
    public function waiting(string $queue, string $key): array
    {
        $sizes = $this->database->execute('SELECT position, ' . RowBatch::SIZE . ' AS bytes FROM weft_blocked_messages WHERE queue = ? AND order_key = ? ORDER BY position LIMIT ' . self::BATCH_SIZE, [$queue, $key])->rows();
        /** @var list<int> $positions */
        $positions = RowBatch::fitting($sizes, 'position');
        if ($positions === []) {
            return [];
        }
        $rows = $this->database->execute(
            'SELECT position, type, headers, body FROM weft_blocked_messages WHERE queue = ? AND order_key = ? AND position <= ? ORDER BY position',
            [$queue, $key, $positions[\count($positions) - 1]],
        )->rows();

        return \array_map(static fn(array $row): Delivery => new Delivery(
            -(int) $row['position'],
            $row['type'],
            $row['body'],
            [Header::ORDER_KEY => $key] + Headers::decode($row['headers']),
            redelivered: true,
        ), $rows);
    }

    public function remove(Delivery $waiting): void
    {
        $this->database->execute('DELETE FROM weft_blocked_messages WHERE position = ?', [-$waiting->tag]);
    }
}
