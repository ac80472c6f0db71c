<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sqlite;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Bindings;
use Weft\Bus\Internal\Persistence\Headers;
use Weft\Bus\Internal\Requests\AbandonedReplyQueues;
use Weft\Bus\Internal\Requests\Replies;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;
use Weft\Pool\PoolException;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Result;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * The broker's tables and every statement on them.
 *
 * A message's id is its queue's id in the upper bits and a sequence number below. One table without a second index therefore holds all queues,
 * each in its order and contiguous. Taking messages does not change their rows: a queue stores the last id that was `taken`, and a claimed
 * range assigns the ids from `first` to `last` to a consumer. When a range is released, its remaining rows are delivered again.
 *
 * @internal
 */
final class Store
{
    /** Sequence numbers per queue; 2^40 messages, 2^23 queues. */
    private const SEQUENCE_BITS = 40;

    /** Ids of queues are drawn up to it: the range of the highest must end within 63 bits. */
    private const HIGHEST_QUEUE_ID = (1 << 23) - 2;

    /** Rows per INSERT with three parameters each; SQLite allows 32,766. */
    private const ROWS_PER_INSERT = 250;

    /** Messages per transaction. */
    private const MESSAGES_PER_TRANSACTION = 1000;

    private const NEXT_ID = 'max(coalesce((SELECT max(id) FROM weft_messages WHERE id < (q.id + 1) << ' . self::SEQUENCE_BITS . '), 0), q.taken) + 1';

    private const INSERT_ONE = 'INSERT INTO weft_messages (id, type, redelivered, headers, body)
        SELECT ' . self::NEXT_ID . ', b.type, 0, ?, ? FROM weft_bindings b JOIN weft_queues q ON q.id = b.queue_id WHERE b.type = ? RETURNING type';

    private const DELETE = 'DELETE FROM weft_messages WHERE id = ?';

    /**
     * Makes the transaction fail when the message is missing: a consumer that has lost its claim must not commit an effect that another one has
     * committed. An invalid JSON path is the only way to raise an error with a text of our own.
     */
    private const SETTLE = "DELETE FROM weft_messages WHERE id = CASE WHEN EXISTS (SELECT 1 FROM weft_messages WHERE id = ?)
        THEN ? ELSE json_extract('{}', 'another consumer has settled the message') END";

    /** Notified when this process may have published to a queue. */
    public readonly Wakeup $arrival;

    public readonly AbandonedReplyQueues $abandoned;

    private function __construct(
        public readonly Database $database,
        public readonly string $file,
    ) {
        $this->abandoned = new AbandonedReplyQueues($this->unconsumedReplyQueues(...), $this->drop(...));
        $this->arrival = new Wakeup('messages in ' . ($file === '' ? 'an in-memory database' : $file));
    }

    public static function open(Database $database): self
    {
        if ($database->driver() !== Driver::Sqlite) {
            throw new \ValueError("The SQLite transport needs an SQLite database, got {$database->driver()->name}");
        }
        (new Migrator($database))->ensure(Tables::component());

        return new self($database, self::fileOf($database));
    }

    /** The absolute path of the database file; empty for an in-memory database. */
    public static function fileOf(Database $database): string
    {
        return (string) $database->execute("SELECT file FROM pragma_database_list WHERE name = 'main'")->value();
    }

    public function sharesDatabase(Database $database): bool
    {
        return $database === $this->database
            || ($database->driver() === Driver::Sqlite && $this->file !== '' && self::fileOf($database) === $this->file);
    }

    /** @param list<string> $types */
    public function declare(string $queue, array $types, bool $withDeadLetters = true): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($queue, $types, $withDeadLetters): void {
            foreach ($withDeadLetters ? [$queue, DeadLetters::queueOf($queue)] : [$queue] as $name) {
                while ($transaction->execute('SELECT 1 FROM weft_queues WHERE name = ?', [$name])->value() === null) {
                    // The counter of consumers never goes back, so that the id of a deleted queue is not used again soon: an acknowledgement for that
                    // queue must not settle a message of another one. An AUTOINCREMENT of this table could not begin again while the highest id is in
                    // use, and reply queues would use all ids up; workers of Weft 0.1 draw from the counter of consumers as well.
                    $number = $transaction->execute("INSERT INTO weft_consumers (queue_id, lock) VALUES (0, '') RETURNING id")->value();
                    $transaction->execute('DELETE FROM weft_consumers WHERE id = ?', [$number]);
                    $transaction->execute('INSERT INTO weft_queues (id, name) VALUES (?, ?) ON CONFLICT DO NOTHING', [1 + $number % self::HIGHEST_QUEUE_ID, $name]);
                }
            }
            $transaction->execute('UPDATE weft_queues SET taken = id << ' . self::SEQUENCE_BITS . ' WHERE taken = 0');
            foreach ($types as $type) {
                $transaction->execute('INSERT INTO weft_bindings (type, queue_id) SELECT ?, id FROM weft_queues WHERE name = ?
                    ON CONFLICT DO NOTHING', [$type, $queue]);
            }
        });
    }

    /** Deletes a queue, its dead-letter queue and all messages in them. */
    public function drop(string $queue): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($queue): void {
            foreach ([$queue, DeadLetters::queueOf($queue)] as $name) {
                $id = $transaction->execute('SELECT id FROM weft_queues WHERE name = ?', [$name])->value();
                if ($id !== null) {
                    $transaction->execute('DELETE FROM weft_messages WHERE id BETWEEN ? AND ?', [$id << self::SEQUENCE_BITS, (($id + 1) << self::SEQUENCE_BITS) - 1]);
                    $transaction->execute('DELETE FROM weft_claimed_ranges WHERE queue_id = ?', [$id]);
                    $transaction->execute('DELETE FROM weft_bindings WHERE queue_id = ?', [$id]);
                    $transaction->execute('DELETE FROM weft_queues WHERE id = ?', [$id]);
                }
            }
        });
    }

    /** @return list<string> names of the reply queues that no process consumes; the queue of a consumer of Weft 0.1 is not known */
    public function unconsumedReplyQueues(): array
    {
        /** @var list<string> */
        return $this->database->execute('SELECT name FROM weft_queues q WHERE name GLOB ? AND NOT EXISTS
            (SELECT 1 FROM weft_consumers c WHERE c.queue_id IN (q.id, 0))', [Replies::QUEUES . '*'])->column();
    }

    /**
     * @param Connection|null $connection a transaction: in memory no one else reads while it is open
     *
     * @throws UndefinedQueueException
     */
    public function queueId(string $queue, ?Connection $connection = null): int
    {
        return ($connection ?? $this->database)->execute('SELECT id FROM weft_queues WHERE name = ?', [$queue])->value()
            ?? throw $this->undefined($queue);
    }

    public function undefined(string $queue): UndefinedQueueException
    {
        return new UndefinedQueueException("Queue \"{$queue}\" is not declared in " . ($this->file === '' ? 'the in-memory database' : $this->file));
    }

    public function depth(int $queue): int
    {
        $this->releaseAbandoned();

        return $this->database->execute('SELECT
            (SELECT count(*) FROM weft_messages m JOIN weft_queues q ON q.id = ? WHERE m.id > q.taken AND m.id < (q.id + 1) << ' . self::SEQUENCE_BITS . ')
            + (SELECT count(*) FROM weft_claimed_ranges c CROSS JOIN weft_messages m ON m.id BETWEEN c.first AND c.last
               WHERE c.queue_id = ? AND c.consumer_id IS NULL)', [$queue, $queue])->value();
    }

    /**
     * @param iterable<Outgoing> $messages
     * @throws UnroutableMessageException|PublishException
     */
    public function publish(iterable $messages): void
    {
        $lost = null;
        $batch = [];
        foreach ($messages as $message) {
            $batch[] = $message;
            if (\count($batch) === self::MESSAGES_PER_TRANSACTION) {
                $lost = $this->publishBatch($batch) ?? $lost;
                $batch = [];
            }
        }
        $lost = $this->publishBatch($batch) ?? $lost;
        if ($lost !== null) {
            throw $this->noQueueFor($lost);
        }
    }

    /**
     * @param list<Outgoing> $messages
     * @return Outgoing|null one that must be routed and has no queue
     */
    private function publishBatch(array $messages): ?Outgoing
    {
        if ($messages === []) {
            return null;
        }
        try {
            $results = \count($messages) === 1
                ? $this->insert($this->database, $messages)
                : $this->database->transaction(fn(Transaction $transaction): array => $this->insert($transaction, $messages));
            /** @var list<list<string>> $routed */
            $routed = \array_map(static fn(Result $types): array => $types->column(), $results);
        } catch (PoolException | SqlException $exception) {
            throw new PublishException("Cannot publish to {$this->file}: {$exception->getMessage()}", $exception);
        }
        $this->arrival->notify();

        return Bindings::firstUnrouted($messages, \array_merge(...$routed));
    }

    /**
     * @param list<Outgoing> $messages
     * @throws UndefinedQueueException|PublishException
     */
    public function put(string $queue, array $messages): void
    {
        $id = $this->queueId($queue);
        try {
            $this->database->transaction(fn(Transaction $transaction) => $this->putIn($transaction, $id, $messages));
        } catch (PoolException | SqlException $exception) {
            throw new PublishException("Cannot publish to queue \"{$queue}\" in {$this->file}: {$exception->getMessage()}", $exception);
        }
        $this->arrival->notify();
    }

    /** @param list<Outgoing> $messages */
    public function putIn(Transaction $transaction, int $queue, array $messages): void
    {
        foreach ($messages as $message) {
            $transaction->execute('INSERT INTO weft_messages (id, type, redelivered, headers, body)
                SELECT ' . self::NEXT_ID . ', ?, 0, ?, ? FROM weft_queues q WHERE q.id = ?', [$message->type, Headers::encode($message->headers), $message->body, $queue]);
        }
    }

    /**
     * @param list<Outgoing> $messages
     * @throws UnroutableMessageException nothing was published
     */
    public function publishIn(Transaction $transaction, array $messages): void
    {
        $lost = self::unroutable($transaction, $messages);
        if ($lost !== null) {
            throw $this->noQueueFor($lost);
        }
        $this->insert($transaction, $messages);
    }

    /**
     * Publishes and acknowledges in a transaction that the caller ends.
     *
     * @param list<Outgoing> $publish
     * @throws UnroutableMessageException
     */
    public function settleIn(Transaction $transaction, Delivery $delivery, array $publish): void
    {
        if ($publish !== []) {
            $this->publishIn($transaction, $publish);
        }
        $transaction->execute(self::SETTLE, [$delivery->tag, $delivery->tag]);
    }

    /**
     * @param list<Outgoing> $publish
     * @throws UnroutableMessageException|PublishException
     */
    public function settle(Delivery $delivery, array $publish): void
    {
        try {
            $this->database->transaction(fn(Transaction $transaction) => $this->settleIn($transaction, $delivery, $publish));
        } catch (PoolException | SqlException $exception) {
            throw new PublishException("Cannot publish to {$this->file}: {$exception->getMessage()}", $exception);
        }
        $this->arrival->notify();
    }

    /** @param list<int> $ids */
    public function delete(array $ids): void
    {
        if (\count($ids) === 1) {
            $this->database->execute(self::DELETE, $ids);
        } else {
            $this->database->execute('DELETE FROM weft_messages WHERE id IN (SELECT value FROM json_each(?))', [\json_encode($ids)]);
        }
    }

    /**
     * Moves a message to the end of a queue.
     *
     * @param array<string, string> $headers
     * @throws UndefinedQueueException the message is still where it was
     */
    public function move(int $id, string $queue, array $headers, bool $redelivered): void
    {
        $this->queueId($queue);
        $this->database->transaction(static function (Transaction $transaction) use ($id, $queue, $headers, $redelivered): void {
            $transaction->execute(
                'INSERT INTO weft_messages (id, type, redelivered, headers, body)
                SELECT ' . self::NEXT_ID . ', m.type, ?, ?, m.body FROM weft_messages m JOIN weft_queues q ON q.name = ? WHERE m.id = ?',
                [(int) $redelivered, Headers::encode($headers), $queue, $id]
            );
            $transaction->execute(self::DELETE, [$id]);
        });
        $this->arrival->notify();
    }

    /** Whether claim() would find a message, or null if the queue was deleted; writes nothing. */
    public function hasReady(int $queue): ?bool
    {
        $ready = $this->database->execute(
            'SELECT
            EXISTS (SELECT 1 FROM weft_claimed_ranges WHERE queue_id = ? AND consumer_id IS NULL)
            OR EXISTS (SELECT 1 FROM weft_messages m JOIN weft_queues q ON q.id = ? WHERE m.id > q.taken AND m.id < (q.id + 1) << ' . self::SEQUENCE_BITS . ')
            FROM weft_queues WHERE id = ?',
            [$queue, $queue, $queue]
        )->value();

        return $ready === null ? null : (bool) $ready;
    }

    /**
     * Takes the oldest released range, and if none is left then, up to `$max` messages that no consumer has taken: those are newer than the
     * messages of every released range.
     *
     * @param int       $batch    number of this call, by which its ranges are found
     * @param list<int> $finished ranges that have no messages left
     *
     * @return list<array{id: int, type: string, redelivered: int, headers: string, body: string, claim: int}>
     */
    public function claim(int $queue, int $consumer, int $batch, int $max, array $finished): array
    {
        $transaction = $this->database->begin();
        if ($finished !== []) {
            $transaction->execute('DELETE FROM weft_claimed_ranges WHERE id IN (SELECT value FROM json_each(?))', [\json_encode($finished)]);
        }
        $transaction->execute('UPDATE weft_claimed_ranges SET consumer_id = ?, batch = ?
            WHERE id = (SELECT id FROM weft_claimed_ranges WHERE queue_id = ? AND consumer_id IS NULL ORDER BY first LIMIT 1)', [$consumer, $batch, $queue]);
        $transaction->execute('INSERT INTO weft_claimed_ranges (queue_id, consumer_id, batch, first, last)
            SELECT ?, ?, ?, min(id), max(id) FROM (
                SELECT m.id FROM weft_queues q CROSS JOIN weft_messages m ON m.id > q.taken AND m.id < (q.id + 1) << ' . self::SEQUENCE_BITS . '
                WHERE q.id = ? ORDER BY m.id LIMIT ?)
            WHERE NOT EXISTS (SELECT 1 FROM weft_claimed_ranges WHERE queue_id = ? AND consumer_id IS NULL)
            HAVING count(*) > 0', [$queue, $consumer, $batch, $queue, $max, $queue]);
        $transaction->execute('UPDATE weft_queues SET taken = c.last FROM (SELECT max(last) AS last FROM weft_claimed_ranges WHERE queue_id = ?) c
            WHERE id = ? AND taken < c.last', [$queue, $queue]);
        $claimed = $transaction->execute('SELECT m.id, m.type, max(m.redelivered, c.redelivered) AS redelivered, m.headers, m.body, c.id AS claim
            FROM weft_claimed_ranges c CROSS JOIN weft_messages m ON m.id BETWEEN c.first AND c.last
            WHERE c.consumer_id = ? AND c.batch = ? ORDER BY m.id', [$consumer, $batch]);
        $transaction->commit();

        /** @var list<array{id: int, type: string, redelivered: int, headers: string, body: string, claim: int}> */
        return $claimed->rows();
    }

    /** @param string $lock path of the file whose lock says that the consumer lives */
    public function register(int $queue, string $lock): int
    {
        return $this->database->execute('INSERT INTO weft_consumers (queue_id, lock) VALUES (?, ?) RETURNING id', [$queue, $lock])->value();
    }

    /** Whether consumers are registered for the queue, in any process; releases what dead ones held. */
    public function isConsumed(int $queue): bool
    {
        $this->releaseAbandoned();

        return (bool) $this->database->execute('SELECT EXISTS (SELECT 1 FROM weft_consumers WHERE queue_id = ?)', [$queue])->value();
    }

    /** Releases everything that the consumer holds. */
    public function release(int $consumer): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($consumer): void {
            $transaction->execute('UPDATE weft_claimed_ranges SET consumer_id = NULL, redelivered = 1 WHERE consumer_id = ?', [$consumer]);
            $transaction->execute('DELETE FROM weft_claimed_ranges WHERE consumer_id IS NULL
                AND NOT EXISTS (SELECT 1 FROM weft_messages m WHERE m.id BETWEEN first AND last)');
            $transaction->execute('DELETE FROM weft_consumers WHERE id = ?', [$consumer]);
        });
        $this->arrival->notify();
    }

    /** Releases what dead consumers held. Returns whether there were any. */
    public function releaseAbandoned(): bool
    {
        $found = false;
        foreach ($this->consumers() as $id => $lock) {
            if ($lock !== '' && Lock::isAbandoned($lock)) {
                $this->release($id);
                $found = true;
            }
        }

        return $found;
    }

    /** Returns when another connection or process may have changed the database. */
    public function waitForChange(): void
    {
        $this->database->waitForChange();
    }

    /** @return array<int, string> lock files by consumer */
    private function consumers(): array
    {
        /** @var array<int, string> */
        return \array_column($this->database->execute('SELECT id, lock FROM weft_consumers')->rows(), 'lock', 'id');
    }

    /**
     * @param list<Outgoing> $messages
     * @return list<Result> the types that have a queue
     */
    private function insert(Connection $connection, array $messages): array
    {
        if (\count($messages) === 1) {
            return [$connection->execute(self::INSERT_ONE, [Headers::encode($messages[0]->headers), $messages[0]->body, $messages[0]->type])];
        }
        $routed = [];
        foreach (\array_chunk($messages, self::ROWS_PER_INSERT) as $chunk) {
            $rows = $parameters = [];
            foreach ($chunk as $index => $message) {
                $rows[] = "({$index}, ?, ?, ?)";
                \array_push($parameters, $message->type, Headers::encode($message->headers), $message->body);
            }
            $routed[] = $connection->execute('INSERT INTO weft_messages (id, type, redelivered, headers, body)
                SELECT ' . self::NEXT_ID . ' + m.column1, m.column2, 0, m.column3, m.column4
                FROM (VALUES ' . \implode(', ', $rows) . ') m
                JOIN weft_bindings b ON b.type = m.column2 JOIN weft_queues q ON q.id = b.queue_id RETURNING type', $parameters);
        }

        return $routed;
    }

    /**
     * @param list<Outgoing> $messages
     * @return Outgoing|null the first that must be routed and has no queue
     */
    private static function unroutable(Connection $connection, array $messages): ?Outgoing
    {
        $types = Bindings::requiredTypes($messages);
        if ($types === []) {
            return null;
        }
        /** @var list<string> $routed */
        $routed = $connection->execute('SELECT type FROM weft_bindings WHERE type IN (' . \implode(', ', \array_fill(0, \count($types), '?')) . ')', $types)->column();

        return Bindings::firstUnrouted($messages, $routed);
    }

    private function noQueueFor(Outgoing $message): UnroutableMessageException
    {
        return UnroutableMessageException::of($message->type, $this->file);
    }
}
