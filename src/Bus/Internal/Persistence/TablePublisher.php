<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\PublishException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

use function Weft\shield;
use function Weft\timeout;

/**
 * Publishes rows of a table and deletes them when the broker has confirmed them. Several processes take different rows. Where a database
 * cannot lock rows they may take the same ones, and those messages are published twice, with one id. If the messages are in the same
 * database, all of it is one transaction.
 *
 * @internal
 */
final class TablePublisher
{
    /** Rows per confirm window and DELETE statement. */
    private const BATCH_ROWS = 2000;

    /** Seconds that publishing and deleting a batch may take. */
    private const BATCH_TIMEOUT = 30.0;

    /** By how much fewer rows are taken after a batch that took too long. */
    private const SHRINK_FACTOR = 4;

    private readonly Dialect $dialect;

    /** The transport, if its messages are in the same database. */
    private readonly ?DatabaseTransport $shared;

    /** Rows per batch. It shrinks when a batch takes too long, and grows again while batches are quick. */
    private int $limit = self::BATCH_ROWS;

    /** Rows of the batch that was taken last. */
    private int $taken = 0;

    /** @param bool $cancellable whether rows may be taken back as long as their `due` is above 0 */
    public function __construct(
        private readonly Database $database,
        private readonly Transport $transport,
        private readonly LoggerInterface $logger,
        private readonly string $table,
        private readonly bool $cancellable = false,
        private readonly float $timeout = self::BATCH_TIMEOUT,
    ) {
        $this->dialect = new Dialect($database);
        $this->shared = $transport instanceof DatabaseTransport && $transport->sharesDatabase($database) ? $transport : null;
    }

    /**
     * Publishes the first rows. Cancelling waits until published rows are deleted, so that a stopping worker does not leave them to be
     * published again.
     *
     * @param string      $condition which rows
     * @param list<mixed> $parameters
     * @param string      $order     the column by which they are ordered
     *
     * @throws PublishException the rows are still there
     * @throws \Weft\Sql\SqlException
     */
    public function carry(string $condition, array $parameters, string $order): PublishedBatch
    {
        $start = Clock::monotonic();
        try {
            $batch = shield(fn(): PublishedBatch => timeout($this->timeout, fn(): PublishedBatch => $this->take($condition, $parameters, $order)));
        } catch (TimeoutException $late) {
            $this->limit = \max(1, \intdiv($this->taken, self::SHRINK_FACTOR));
            throw new PublishException("{$this->taken} messages of {$this->table} could not be published within {$this->timeout} seconds; they stay in the table, and fewer are tried next", $late);
        }
        if (Clock::monotonic() - $start < $this->timeout / self::SHRINK_FACTOR) {
            $this->limit = \min(self::BATCH_ROWS, 2 * $this->limit);
        }

        return $batch;
    }

    /** @param list<mixed> $parameters */
    private function take(string $condition, array $parameters, string $order): PublishedBatch
    {
        if ($this->shared !== null || $this->dialect->locksRows()) {
            return $this->database->transaction(function (Transaction $transaction) use ($condition, $parameters, $order): PublishedBatch {
                [$ids, $more] = $this->choose($transaction, $condition, $parameters, $order);

                return $this->publish($transaction, $ids, $this->rows($transaction, $ids, $order), $more);
            });
        }
        [$ids, $more] = $this->choose($this->database, $condition, $parameters, $order);

        return $this->cancellable
            ? $this->publishMarked($ids, $condition, $parameters, $more)
            : $this->publish($this->database, $ids, $this->rows($this->database, $ids, $order), $more);
    }

    /**
     * Locks the first rows where it can, and chooses as many of them as fit into a batch.
     *
     * @param list<mixed> $parameters
     * @return array{list<string>, bool} their ids, and whether there are more
     */
    private function choose(Connection $connection, string $condition, array $parameters, string $order): array
    {
        $size = RowBatch::SIZE;
        $sizes = $connection->execute(
            "SELECT id, {$size} AS bytes FROM {$this->table} WHERE {$condition} ORDER BY {$order} LIMIT {$this->limit}{$this->dialect->skipLocked()}",
            $parameters,
        )->rows();
        /** @var list<string> $ids */
        $ids = RowBatch::fitting($sizes, 'id');
        $this->taken = \count($ids);

        return [$ids, \count($sizes) > \count($ids) || \count($sizes) === $this->limit];
    }

    /**
     * @param list<string> $ids
     * @return list<array<string, mixed>>
     */
    private function rows(Connection $connection, array $ids, string $order): array
    {
        if ($ids === []) {
            return [];
        }
        [$among, $parameters] = $this->dialect->among('id', $ids);

        return $connection->execute("SELECT * FROM {$this->table} WHERE {$among} ORDER BY {$order}", $parameters)->rows();
    }

    /**
     * Where rows cannot be locked, rows being published have a negative time, so that they cannot be cancelled.
     *
     * @param list<string> $ids
     * @param list<mixed>  $parameters
     */
    private function publishMarked(array $ids, string $condition, array $parameters, bool $more): PublishedBatch
    {
        if ($ids === []) {
            return new PublishedBatch(0, [], null, $more);
        }
        [$among, $values] = $this->dialect->among('id', $ids);
        // One of them may have been cancelled or put off since.
        $rows = $this->database->execute("UPDATE {$this->table} SET due = -abs(due) WHERE {$among} AND {$condition} RETURNING *", [...$values, ...$parameters])->rows();
        \usort($rows, static fn(array $one, array $other): int => $other['due'] <=> $one['due']);
        try {
            return $this->publish($this->database, $ids, $rows, $more);
        } catch (\Throwable $thrown) {
            $this->database->execute("UPDATE {$this->table} SET due = abs(due) WHERE {$among}", $values);
            throw $thrown;
        }
    }

    /**
     * @param list<string>               $ids  the chosen ones
     * @param list<array<string, mixed>> $rows those of them that are still there
     */
    private function publish(Connection $connection, array $ids, array $rows, bool $more): PublishedBatch
    {
        $stuck = [];
        foreach ($this->byQueue($rows) as $queue => $group) {
            $stuck = [...$stuck, ...\array_column($this->send($connection, (string) $queue, $group), 'id')];
        }
        $sent = \array_values(\array_diff(\array_column($rows, 'id'), $stuck));
        if ($sent !== []) {
            /** @var non-empty-list<string> $sent */
            [$among, $parameters] = $this->dialect->among('id', $sent);
            $connection->execute("DELETE FROM {$this->table} WHERE {$among}", $parameters);
        }

        /** @var list<string> $stuck */
        return new PublishedBatch(\count($sent), $stuck, $ids[\count($ids) - 1] ?? null, $more);
    }

    /**
     * @param list<array<string, mixed>> $rows
     * @return list<array<string, mixed>> those without a queue, and those that the broker does not take
     */
    private function send(Connection $connection, string $queue, array $rows): array
    {
        try {
            $this->hand($connection, $queue, \array_map(self::message(...), $rows));

            return [];
        } catch (UndefinedQueueException $undefined) {
            // They share the queue, so one attempt decides for all.
            $this->logger->error('{count} messages for queue "{queue}" could not be published and stay in {table}: {error}', [
                'count' => \count($rows),
                'queue' => $queue,
                'table' => $this->table,
                'error' => $undefined->getMessage(),
            ]);

            return $rows;
        } catch (UnroutableMessageException | PublishException $failed) {
            if ($failed instanceof PublishException && !$failed->refused && !$failed->nacked) {
                throw $failed;
            }
            if (\count($rows) === 1) {
                $this->logger->error('Message {id} of type {type} could not be published and stays in {table}: {error}', [
                    'id' => $rows[0]['id'],
                    'type' => $rows[0]['type'],
                    'table' => $this->table,
                    'error' => $failed->getMessage(),
                ]);

                return $rows;
            }
        }
        // The others were published; they are published again one by one, with the same ids.
        return \array_merge(...\array_map(fn(array $row): array => $this->send($connection, $queue, [$row]), $rows));
    }

    /** @param list<Outgoing> $messages */
    private function hand(Connection $connection, string $queue, array $messages): void
    {
        if ($this->shared !== null && $connection instanceof Transaction) {
            $this->shared->publishIn($connection, $queue === '' ? null : $queue, $messages);

            return;
        }
        $queue === '' ? $this->transport->publish($messages) : $this->transport->put($queue, $messages);
    }

    /**
     * @param list<array<string, mixed>> $rows
     * @return array<string, list<array<string, mixed>>>
     */
    private function byQueue(array $rows): array
    {
        $groups = [];
        foreach ($rows as $row) {
            $groups[$row['queue'] ?? ''][] = $row;
        }

        /** @var array<string, list<array<string, mixed>>> $groups */
        return $groups;
    }

    /** @param array<string, mixed> $row */
    private static function message(array $row): Outgoing
    {
        return new Outgoing($row['type'], $row['body'], Headers::decode($row['headers']), mustRoute: $row['must_route'] === 1);
    }
}
