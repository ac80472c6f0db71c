<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Header;
use Weft\Bus\Priority;
use Weft\Bus\Internal\Persistence\Headers;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UndefinedQueueException;
use Weft\Sql\Bytes;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Result;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * Statements on messages and on the consumers that own them.
 *
 * @internal
 */
final class Store
{
    /** Messages and bytes per INSERT. */
    private const ROWS = 1000;
    private const BYTES = 4 << 20;

    private const INTO = 'INSERT INTO weft_messages (id, type, headers, body) SELECT ';

    /** Rows are numbered after sorting. */
    private const INSERT = self::INTO . '(m.queue_id::bigint << ' . Tables::QUEUE_BITS . ') + (m.rank << '
        . Tables::NUMBER_BITS . ") + nextval('weft_message_numbers'), m.type, m.headers, m.body FROM ";

    private const ROWS_GIVEN = 'unnest(?::text[], ?::bigint[], ?::text[], ?::bytea[]) WITH ORDINALITY AS r(type, rank, headers, body, place)';

    /** Returns the types that have a queue. */
    private const INSERT_ROUTED = 'WITH put AS (' . self::INSERT . '(SELECT r.*, b.queue_id FROM ' . self::ROWS_GIVEN
        . ' JOIN weft_bindings b ON b.type = r.type ORDER BY r.place) m RETURNING type) SELECT DISTINCT type FROM put';

    /** Locks the queue, so that it is not deleted concurrently without these messages. */
    private const QUEUE = 'WITH q AS MATERIALIZED (SELECT id FROM weft_queues WHERE name = ? FOR SHARE) ';
    private const INSERT_INTO = self::QUEUE . self::INSERT
        . '(SELECT q.id AS queue_id, r.* FROM q, ' . self::ROWS_GIVEN . ' ORDER BY r.place) m';

    /**
     * For one message: the same without arrays. The planner estimates more rows for an array that it does not know, so it would plan the
     * statement anew each time.
     */
    private const INSERT_ONE = ' << ' . Tables::QUEUE_BITS . ') + (?::bigint << ' . Tables::NUMBER_BITS . ") + nextval('weft_message_numbers'), ?::text, ?::text, ?::bytea FROM ";
    private const INSERT_ONE_ROUTED = self::INTO . '(b.queue_id::bigint' . self::INSERT_ONE . 'weft_bindings b WHERE b.type = ? RETURNING type';
    private const INSERT_ONE_INTO = self::QUEUE . self::INTO . '(q.id::bigint' . self::INSERT_ONE . 'q';

    /**
     * Locks the consumer's own row first. A process that considers the consumer dead and releases its messages waits for this lock; if the
     * consumer was released before, its row is missing and it takes nothing.
     */
    private const CLAIM = 'WITH me AS MATERIALIZED (SELECT id FROM weft_consumers WHERE id = ?::int FOR UPDATE),
        ready AS MATERIALIZED (SELECT id FROM weft_messages WHERE id >= ? AND id < ? AND consumer_id IS NULL AND EXISTS (SELECT 1 FROM me)
            ORDER BY id LIMIT ?::int FOR UPDATE SKIP LOCKED),
        taken AS (UPDATE weft_messages m SET consumer_id = ?::int FROM ready WHERE m.id = ready.id
            RETURNING m.id, m.type, m.headers, m.body, m.redelivered),
        noted AS (UPDATE weft_consumers c SET first = least(?::bigint, t.first), last = greatest(c.last, t.last)
            FROM (SELECT min(id) AS first, max(id) AS last FROM ready HAVING count(*) > 0) t WHERE c.id = ?::int)
        SELECT id, type, headers, body, redelivered FROM taken ORDER BY id';

    /** Makes the transaction fail if another consumer owns the message now. */
    private const SETTLE = "WITH gone AS (DELETE FROM weft_messages WHERE id = ? AND consumer_id = ?::int RETURNING 1)
        SELECT CASE count(*) WHEN 1 THEN 0 ELSE ('the message belongs to another consumer, rows: ' || count(*))::int END FROM gone";

    /**
     * Begins a transaction that need not survive a crash of the server. The planner must use the primary key also when its statistics suggest
     * that many rows match.
     */
    private const ASYNCHRONOUS_COMMIT = "SELECT set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)";

    /** @var \WeakMap<Database, bool> */
    private \WeakMap $shared;

    private ?string $identity = null;

    public readonly Queues $queues;

    public function __construct(public readonly Database $database)
    {
        $this->queues = new Queues($database);
        $this->shared = new \WeakMap();
    }

    /** @throws SqlException when the other database cannot be queried */
    public function sharesDatabase(Database $other): bool
    {
        return $this->shared[$other] ??= $other === $this->database || ($other->driver() === $this->database->driver() && self::identityOf($other) === $this->identity());
    }

    /**
     * Publishes to all bound queues.
     *
     * @param list<Outgoing> $messages
     * @return list<Result> the types that have a queue
     */
    public function insert(Connection $connection, array $messages): array
    {
        $routed = [];
        foreach (self::chunks($messages) as $columns) {
            $one = self::one($columns);
            $routed[] = $one === null
                ? $connection->execute(self::INSERT_ROUTED, $columns)
                : $connection->execute(self::INSERT_ONE_ROUTED, [...$one, $columns[0][0]]);
        }

        return $routed;
    }

    /**
     * Publishes all messages to all bound queues, or none.
     *
     * @param list<Outgoing> $messages
     * @return list<string> the types that have a queue
     */
    public function insertAll(array $messages): array
    {
        $routed = \count($messages) === 1
            ? $this->insert($this->database, $messages)
            : $this->database->transaction(fn(Transaction $transaction): array => $this->insert($transaction, $messages));

        /** @var list<list<string>> $types */
        $types = \array_map(static fn(Result $result): array => $result->column(), $routed);

        return \array_merge(...$types);
    }

    /**
     * @param list<Outgoing> $messages
     * @throws UndefinedQueueException
     */
    public function insertInto(Connection $connection, string $queue, array $messages): void
    {
        foreach (self::chunks($messages) as $columns) {
            $one = self::one($columns);
            $inserted = $one === null
                ? $connection->execute(self::INSERT_INTO, [$queue, ...$columns])
                : $connection->execute(self::INSERT_ONE_INTO, [$queue, ...$one]);
            if ($inserted->affected() === 0) {
                throw Queues::undefined($queue);
            }
        }
    }

    /**
     * Takes up to `$max` messages, the highest priority first, then the oldest.
     *
     * @param int|null $first the smallest id of the messages that the consumer holds
     * @return list<array{id: int, type: string, headers: string, body: string, redelivered: bool}> empty also when the consumer
     *         was released as dead
     */
    public function claim(int $queue, int $consumer, int $max, ?int $first): array
    {
        /** @var list<array{id: int, type: string, headers: string, body: string, redelivered: bool}> */
        return $this->lazily(fn(Transaction $transaction): array
            => $transaction->execute(self::CLAIM, [$consumer, ...Queues::range($queue), $max, $consumer, $first, $consumer])->rows());
    }

    /**
     * Deletes messages that the consumer has handled. Messages that belong to another consumer now stay.
     *
     * @param list<int> $ids
     */
    public function delete(int $consumer, array $ids): void
    {
        $this->lazily(static fn(Transaction $transaction)
            => $transaction->execute('DELETE FROM weft_messages WHERE id = ANY(?::bigint[]) AND consumer_id = ?::int', [$ids, $consumer]));
    }

    /**
     * Returns messages to the queue that the consumer took in a transaction whose commit was never confirmed to it.
     *
     * @param list<int> $known ids of the messages that it knows it holds
     */
    public function giveBackUnknown(int $consumer, array $known): void
    {
        $this->lazily(static fn(Transaction $transaction) => $transaction->execute('UPDATE weft_messages m SET consumer_id = NULL FROM weft_consumers c
            WHERE c.id = ?::int AND m.id BETWEEN c.first AND c.last AND m.consumer_id = c.id AND m.id <> ALL(?::bigint[])', [$consumer, $known]));
    }

    /** @param list<int> $ids */
    public function giveBack(int $consumer, array $ids): void
    {
        $this->lazily(static fn(Transaction $transaction)
            => $transaction->execute('UPDATE weft_messages SET consumer_id = NULL, redelivered = TRUE WHERE id = ANY(?::bigint[]) AND consumer_id = ?::int', [$ids, $consumer]));
    }

    /**
     * Moves a message to another queue. Does nothing when the message belongs to another consumer now.
     *
     * @param array<string, string> $headers
     */
    public function move(int $consumer, int $id, int $queue, array $headers): void
    {
        $this->database->execute(
            'UPDATE weft_messages SET id = (?::bigint << ' . Tables::QUEUE_BITS . ') + (' . Tables::HIGHEST_PRIORITY . '::bigint << ' . Tables::NUMBER_BITS . ")
                + nextval('weft_message_numbers'), headers = ?, consumer_id = NULL, redelivered = FALSE WHERE id = ? AND consumer_id = ?::int",
            [$queue, Headers::encode($headers), $id, $consumer],
        );
    }

    /** Makes the transaction fail if another consumer owns the message now. */
    public function settleIn(Transaction $transaction, int $consumer, int $id): void
    {
        $transaction->execute(self::SETTLE, [$id, $consumer]);
    }

    /** Releases all messages of a consumer and deletes it. */
    public function release(int $consumer): void
    {
        $this->lazily(static fn(Transaction $transaction) => self::releaseIn($transaction, [$consumer]));
    }

    /** @return int number of dead consumers */
    public function releaseDead(): int
    {
        return $this->lazily(static function (Transaction $transaction): int {
            /** @var list<int> $dead */
            $dead = $transaction->execute('SELECT id FROM weft_consumers WHERE ' . LivenessSession::isDead('id'))->column();
            if ($dead !== []) {
                self::releaseIn($transaction, $dead);
            }

            return \count($dead);
        });
    }

    /** @param list<int> $consumers */
    private static function releaseIn(Transaction $transaction, array $consumers): void
    {
        $transaction->execute('SELECT id FROM weft_consumers WHERE id = ANY(?::int[]) ORDER BY id FOR UPDATE', [$consumers]);
        $transaction->execute('UPDATE weft_messages m SET consumer_id = NULL, redelivered = TRUE FROM weft_consumers c
            WHERE c.id = ANY(?::int[]) AND m.id BETWEEN c.first AND c.last AND m.consumer_id = c.id', [$consumers]);
        $transaction->execute('DELETE FROM weft_consumers WHERE id = ANY(?::int[])', [$consumers]);
    }

    /**
     * Runs `$work` without waiting for the disk. A crash of the server may undo it, but also ends the connections of all consumers, so that nobody
     * holds a message.
     *
     * @template T
     * @param \Closure(Transaction): T $work
     * @return T
     */
    private function lazily(\Closure $work): mixed
    {
        return $this->database->transaction(static function (Transaction $transaction) use ($work): mixed {
            $transaction->execute(self::ASYNCHRONOUS_COMMIT);

            return $work($transaction);
        });
    }

    /**
     * @param list<Outgoing> $messages
     * @return iterable<array{list<string>, list<int>, list<string>, list<Bytes>}> columns
     */
    private static function chunks(array $messages): iterable
    {
        $columns = [[], [], [], []];
        $bytes = 0;
        foreach ($messages as $message) {
            if (\count($columns[0]) === self::ROWS || $bytes > self::BYTES) {
                yield $columns;
                $columns = [[], [], [], []];
                $bytes = 0;
            }
            $columns[0][] = $message->type;
            $columns[1][] = Tables::HIGHEST_PRIORITY - \max(0, \min(Tables::HIGHEST_PRIORITY, (int) ($message->headers[Header::PRIORITY] ?? Priority::NORMAL)));
            $columns[2][] = Headers::encode($message->headers);
            $columns[3][] = new Bytes($message->body);
            $bytes += \strlen($message->body);
        }
        if ($columns[0] !== []) {
            yield $columns;
        }
    }

    /**
     * @param array{list<string>, list<int>, list<string>, list<Bytes>} $columns
     * @return array{int, string, string, Bytes}|null the parameters of {@see INSERT_ONE} if it is one message
     */
    private static function one(array $columns): ?array
    {
        [$types, $ranks, $headers, $bodies] = $columns;

        return \count($types) === 1 ? [$ranks[0], $types[0], $headers[0], $bodies[0]] : null;
    }

    private function identity(): string
    {
        return $this->identity ??= self::identityOf($this->database);
    }

    /** The same for two connections if they use the same tables of the same running server. */
    private static function identityOf(Database $database): string
    {
        return (string) $database->execute("SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), current_database(), to_regclass('weft_messages')::oid)")->value();
    }
}
