<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Bindings;
use Weft\Bus\Internal\Requests\Replies;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;
use Weft\Sql\Connection;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * The queues of the broker: their ids, bindings and depths.
 *
 * @internal
 */
final class Queues
{
    /** Connections of a pool that may all have been lost. */
    public const POOLED = 8;

    /** Ids are drawn up to it: the range of the highest must end within 63 bits. */
    private const HIGHEST_ID = 524_286;

    public function __construct(private readonly Database $database) {}

    /** @param list<string> $types */
    public function declare(string $queue, array $types, bool $withDeadLetters = true): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($queue, $types, $withDeadLetters): void {
            $transaction->execute("SELECT pg_advisory_xact_lock(hashtext('weft tables'))");
            foreach ($withDeadLetters ? [$queue, DeadLetters::queueOf($queue)] : [$queue] as $name) {
                while ($transaction->execute('SELECT 1 FROM weft_queues WHERE name = ?', [$name])->value() === null) {
                    // The id of a deleted queue is not used again soon: its consumers, and messages on their way there, must not meet another queue.
                    $transaction->execute("INSERT INTO weft_queues (id, name) VALUES (1 + nextval('weft_consumer_numbers') % ?::int, ?)
                        ON CONFLICT (id) DO NOTHING", [self::HIGHEST_ID, $name]);
                }
            }
            $transaction->execute('INSERT INTO weft_bindings (type, queue_id) SELECT t.type, q.id FROM weft_queues q, unnest(?::text[]) AS t(type)
                WHERE q.name = ? ON CONFLICT DO NOTHING', [$types, $queue]);
        });
    }

    /** Deletes a queue, its dead-letter queue and all messages in them. */
    public function drop(string $queue): void
    {
        foreach ([$queue, DeadLetters::queueOf($queue)] as $name) {
            $this->database->transaction(static function (Transaction $transaction) use ($name): void {
                $id = $transaction->execute('DELETE FROM weft_queues WHERE name = ? RETURNING id', [$name])->value();
                $id === null || $transaction->execute('DELETE FROM weft_messages WHERE id >= ? AND id < ?', self::range($id));
            });
        }
    }

    /** @return list<string> names of the reply queues that no process consumes */
    public function unconsumedReplyQueues(): array
    {
        /** @var list<string> */
        return $this->database->execute('SELECT name FROM weft_queues q WHERE starts_with(name, ?) AND NOT EXISTS
            (SELECT 1 FROM weft_consumers c WHERE c.queue_id = q.id)', [Replies::QUEUES])->column();
    }

    /** @throws UndefinedQueueException */
    public function id(string $queue): int
    {
        return $this->ask('SELECT id FROM weft_queues WHERE name = ?', [$queue])
            ?? throw self::undefined($queue);
    }

    /**
     * @param list<Outgoing> $messages
     * @return Outgoing|null the first that must be routed and has no queue
     */
    public function unroutable(array $messages, Connection $connection): ?Outgoing
    {
        $types = Bindings::requiredTypes($messages);
        if ($types === []) {
            return null;
        }
        /** @var list<string> $routed */
        $routed = $connection->execute('SELECT type FROM weft_bindings WHERE type = ANY(?::text[])', [$types])->column();

        return Bindings::firstUnrouted($messages, $routed);
    }

    /** Whether a message is ready, or null if the queue was deleted; writes nothing. */
    public function hasReady(int $queue): ?bool
    {
        return $this->ask('SELECT EXISTS (SELECT 1 FROM weft_messages WHERE id >= ? AND id < ? AND consumer_id IS NULL ORDER BY id LIMIT 1)
            FROM weft_queues WHERE id = ?', [...self::range($queue), $queue]);
    }

    /** Whether consumers are registered for the queue, in any process. */
    public function isConsumed(int $queue): bool
    {
        return (bool) $this->database->execute('SELECT EXISTS (SELECT 1 FROM weft_consumers WHERE queue_id = ?)', [$queue])->value();
    }

    public function depth(int $queue): int
    {
        return $this->ask('SELECT count(*) FROM weft_messages WHERE id >= ? AND id < ? AND consumer_id IS NULL', self::range($queue));
    }

    public static function noQueueFor(Outgoing $message): UnroutableMessageException
    {
        return UnroutableMessageException::of($message->type, 'this PostgreSQL database');
    }

    public static function undefined(string $queue): UndefinedQueueException
    {
        return new UndefinedQueueException("Queue \"{$queue}\" is not declared in this PostgreSQL database");
    }

    /** @return array{int, int} the first id of a queue, and the first after it */
    public static function range(int $queue): array
    {
        return [$queue << Tables::QUEUE_BITS, ($queue + 1) << Tables::QUEUE_BITS];
    }

    /**
     * One value. A pool may hold connections that were cut together: then the next one is asked.
     *
     * @param list<mixed> $parameters
     */
    private function ask(string $query, array $parameters): mixed
    {
        for ($lost = 1; true; $lost++) {
            try {
                return $this->database->execute($query, $parameters)->value();
            } catch (ConnectionLostException $exception) {
                if ($lost > self::POOLED) {
                    throw $exception;
                }
            }
        }
    }
}
