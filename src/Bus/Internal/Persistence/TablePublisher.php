<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
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
    public const BATCH_SIZE = 2000;

    /** Seconds that publishing and deleting a batch may take. */
    private const BATCH_TIMEOUT = 30.0;

    private readonly Dialect $dialect;

    /** The transport, if its messages are in the same database. */
    private readonly ?DatabaseTransport $shared;

    /** @param bool $cancellable whether rows may be taken back as long as their `due` is above 0 */
    public function __construct(
        private readonly Database $database,
        private readonly Transport $transport,
        private readonly LoggerInterface $logger,
        private readonly string $table,
        private readonly bool $cancellable = false,
    ) {
        $this->dialect = new Dialect($database);
        $this->shared = $transport instanceof DatabaseTransport && $transport->sharesDatabase($database) ? $transport : null;
    }

    /**
     * Cancelling waits until published rows are deleted, so that a stopping worker does not leave them to be published again.
     *
     * @param string      $condition which rows, in which order
     * @param list<mixed> $parameters
     * @return array{list<array<string, mixed>>, list<array<string, mixed>>} rows taken, and those of them that are still
     *         there because they have no queue
     *
     * @throws PublishException the rows are still there
     * @throws \Weft\Sql\SqlException
     */
    public function carry(string $condition, array $parameters): array
    {
        try {
            return shield(fn(): array => timeout(self::BATCH_TIMEOUT, fn(): array => $this->take($condition, $parameters)));
        } catch (TimeoutException $late) {
            throw new PublishException(\sprintf('Messages of %s could not be published within %d seconds; they stay in the table', $this->table, self::BATCH_TIMEOUT), $late);
        }
    }

    /**
     * @param list<mixed> $parameters
     * @return array{list<array<string, mixed>>, list<array<string, mixed>>}
     */
    private function take(string $condition, array $parameters): array
    {
        $select = "SELECT * FROM {$this->table} WHERE {$condition} LIMIT " . self::BATCH_SIZE;
        if ($this->shared === null && !$this->dialect->locksRows()) {
            return $this->cancellable
                ? $this->publishMarked($condition, $parameters)
                : $this->publish($this->database, $this->database->execute($select, $parameters)->rows());
        }

        return $this->database->transaction(fn(Transaction $transaction): array
            => $this->publish($transaction, $transaction->execute($select . $this->dialect->skipLocked(), $parameters)->rows()));
    }

    /**
     * Where rows cannot be locked, rows being published have a negative time, so that they cannot be cancelled.
     *
     * @param list<mixed> $parameters
     * @return array{list<array<string, mixed>>, list<array<string, mixed>>}
     */
    private function publishMarked(string $condition, array $parameters): array
    {
        $rows = $this->database->execute(
            "UPDATE {$this->table} SET due = -abs(due) WHERE id IN (SELECT id FROM {$this->table} WHERE {$condition} LIMIT " . self::BATCH_SIZE . ') RETURNING *',
            $parameters,
        )->rows();
        \usort($rows, static fn(array $one, array $other): int => $other['due'] <=> $one['due']);
        try {
            return $this->publish($this->database, $rows);
        } catch (\Throwable $thrown) {
            /** @var non-empty-list<string> $ids */
            $ids = \array_column($rows, 'id');
            [$among, $parameters] = $this->dialect->among('id', $ids);
            $this->database->execute("UPDATE {$this->table} SET due = abs(due) WHERE {$among}", $parameters);
            throw $thrown;
        }
    }

    /**
     * @param list<array<string, mixed>> $rows
     * @return array{list<array<string, mixed>>, list<array<string, mixed>>}
     */
    private function publish(Connection $connection, array $rows): array
    {
        $stuck = [];
        foreach ($this->byQueue($rows) as $queue => $group) {
            $stuck = [...$stuck, ...$this->send($connection, (string) $queue, $group)];
        }
        $sent = \array_diff(\array_column($rows, 'id'), \array_column($stuck, 'id'));
        if ($sent !== []) {
            /** @var non-empty-list<string> $ids */
            $ids = \array_values($sent);
            [$among, $parameters] = $this->dialect->among('id', $ids);
            $connection->execute("DELETE FROM {$this->table} WHERE {$among}", $parameters);
        }

        return [$rows, $stuck];
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
            if ($failed instanceof PublishException && !$failed->refused) {
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
