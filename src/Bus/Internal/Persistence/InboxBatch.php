<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Bytes;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * The inbox rows of many messages and one handler, and the outbox rows of what it sends, in a few statements.
 *
 * @internal
 */
final class InboxBatch
{
    /** Rows per statement at most; smaller numbers are split into powers of two, so that few statements are prepared. */
    private const MAX_ROWS = 256;

    private readonly Dialect $dialect;

    /** @param int $consumer names queue and handler */
    public function __construct(
        private readonly Database $database,
        private readonly int $consumer,
    ) {
        $this->dialect = new Dialect($database);
    }

    /** @param list<Delivery> $deliveries those without an id cannot be recognised and are left out */
    public function note(Transaction $transaction, array $deliveries): void
    {
        $rows = [];
        foreach ($deliveries as $delivery) {
            $id = Persistence::idOf($delivery->headers);
            if ($id !== '') {
                $rows[] = [$id, $this->consumer, InboxEntry::fingerprint($delivery->body)];
            }
        }
        self::insert($transaction, 'INSERT INTO weft_inbox (message_id, consumer, body_hash, handled_at) VALUES ', $rows, ", {$this->dialect->seconds()}");
    }

    /** @param list<Outgoing> $messages */
    public function send(Transaction $transaction, array $messages): void
    {
        self::insert($transaction, OutboxRow::INSERT, \array_map(OutboxRow::of(...), $messages));
    }

    /**
     * Which of the messages were handled before, and whether with the same body.
     *
     * @param list<Delivery> $deliveries
     * @return array<int, bool> by the key of the delivery
     * @throws \Weft\Sql\SqlException
     */
    public function handled(array $deliveries): array
    {
        $ids = \array_filter(\array_map(static fn(Delivery $delivery): string => Persistence::idOf($delivery->headers), $deliveries), static fn(string $id): bool => $id !== '');
        if ($ids === []) {
            return [];
        }
        [$among, $parameters] = $this->dialect->among('message_id', \array_values($ids));
        $rows = $this->database->execute("SELECT message_id, body_hash FROM weft_inbox WHERE consumer = ? AND {$among}", [$this->consumer, ...$parameters])->rows();
        $bodies = \array_column($rows, 'body_hash', 'message_id');
        $handled = [];
        foreach ($ids as $key => $id) {
            if (isset($bodies[$id])) {
                $handled[$key] = $bodies[$id] === InboxEntry::fingerprint($deliveries[$key]->body);
            }
        }

        return $handled;
    }

    /**
     * @param list<list<mixed>> $rows
     * @param string            $suffix of each row, after its parameters
     */
    private static function insert(Transaction $transaction, string $statement, array $rows, string $suffix = ''): void
    {
        $left = \count($rows);
        $from = 0;
        for ($count = self::MAX_ROWS; $left > 0; $count = \intdiv($count, 2)) {
            while ($left >= $count) {
                $tuple = '(' . \implode(', ', \array_fill(0, \count($rows[0]), '?')) . "{$suffix})";
                $transaction->execute($statement . \implode(', ', \array_fill(0, \max(1, $count), $tuple)), \array_merge(...\array_slice($rows, $from, $count)));
                $from += $count;
                $left -= $count;
            }
        }
    }
}
