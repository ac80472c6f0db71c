<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\AlreadyScheduledException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Bytes;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\TransactionAbortedException;
use Weft\Sql\UniqueViolationException;

use function Weft\delay;

/**
 * Delayed messages in a table, by due time.
 *
 * @internal
 */
final class DelayedMessages implements DelayStore
{
    private const COLUMNS = ['id', 'due', 'queue', 'type', 'must_route', 'headers', 'body'];
    private const INSERT_ROW = 'INSERT INTO weft_delayed (id, due, queue, type, must_route, headers, body) VALUES (?, ?, ?, ?, ?, ?, ?)';
    private const FIND = 'SELECT 1 FROM weft_delayed WHERE id = ?';
    private const DROP = 'DELETE FROM weft_delayed WHERE id = ? AND due > 0';

    /** Seconds until a due message that has no queue, or that the broker refuses, is tried again. */
    private const RETRY_DELAY = 30.0;

    /** How often a change is made that the database rolls back in favour of another transaction. */
    private const MAX_ATTEMPTS = 10;

    /** Maximum seconds before the second attempt; it doubles with each further one. */
    private const FIRST_PAUSE = 0.005;

    /** Woken when this process stores a message that may be due before all others. */
    public readonly Wakeup $earlier;

    private readonly TablePublisher $publisher;

    private readonly Dialect $dialect;
    private readonly string $replace;

    public function __construct(
        public readonly Database $database,
        Transport $transport,
        LoggerInterface $logger,
    ) {
        $this->earlier = new Wakeup('a delayed message');
        $this->dialect = new Dialect($database);
        $this->replace = $this->dialect->replace('weft_delayed', self::COLUMNS);
        $this->publisher = new TablePublisher($database, $transport, $logger, 'weft_delayed', cancellable: true);
    }

    public function check(Outgoing $message, float $due, ?Transaction $transaction): void
    {
        $id = $message->headers[Header::DELAY_ID] ?? null;
        if ($id !== null && ($transaction ?? $this->database)->execute(self::FIND, [$id])->value() !== null) {
            throw AlreadyScheduledException::of($id);
        }
    }

    public function store(Outgoing $message, float $due): void
    {
        $this->repeat(fn() => $this->add($this->database, $message, $due));
        $this->earlier->notify();
    }

    /**
     * Stores a delayed message as part of a transaction. Notify {@see $earlier} after its commit.
     *
     * @throws AlreadyScheduledException
     */
    public function add(Connection $connection, Outgoing $message, float $due): void
    {
        $id = $message->headers[Header::DELAY_ID] ?? null;
        if ($id === null) {
            $connection->execute(self::INSERT_ROW, self::row(Persistence::idOf($message->headers), $message, '', $due));

            return;
        }
        try {
            $connection->execute(self::INSERT_ROW, self::row($id, $message, '', $due))->affected();
        } catch (UniqueViolationException $taken) {
            throw AlreadyScheduledException::of($id, $taken);
        }
    }

    public function storeRetry(Outgoing $message, string $queue, float $seconds): void
    {
        $this->repeat(fn() => $this->database->transaction(fn(Transaction $transaction) => $this->addRetry($transaction, $message, $queue, $seconds)));
        $this->earlier->notify();
    }

    /** Stores a failed message for a delayed retry as part of a transaction. */
    public function addRetry(Transaction $transaction, Outgoing $message, string $queue, float $seconds): void
    {
        $id = self::retryId($queue, $message->headers, $message->type, $message->body);
        $transaction->execute($this->replace, self::row($id, $message, $queue, Clock::now() + $seconds));
    }

    /**
     * Two services that share the database may both retry one event. Two messages may therefore have the same id, and neither must be lost.
     *
     * @param array<string, string> $headers
     */
    public static function retryId(string $queue, array $headers, string $type, string $body): string
    {
        return Persistence::idOf($headers) . '@' . \hash('xxh3', "{$queue}\0{$type}\0{$body}");
    }

    public function retries(string $queue): int
    {
        return $this->database->execute('SELECT count(*) FROM weft_delayed WHERE queue = ?', [$queue])->value();
    }

    public function forgetRetries(string $queue): void
    {
        $this->repeat(fn() => $this->database->execute('DELETE FROM weft_delayed WHERE queue = ?', [$queue]));
    }

    public function cancel(string $messageId): bool
    {
        return $this->repeat(fn(): bool => self::drop($this->database, $messageId));
    }

    /** Deletes a delayed message, as part of a transaction if there is one. */
    public static function drop(Connection $connection, string $messageId): bool
    {
        return $connection->execute(self::DROP, [$messageId])->affected() === 1;
    }

    /** When the next message is due, by {@see Clock::now()}; null when none is waiting. */
    public function next(): ?float
    {
        $due = $this->database->execute('SELECT min(due) FROM weft_delayed')->value();

        return $due === null ? null : $due / 1000;
    }

    /**
     * Publishes what is due.
     *
     * @return int how many messages
     * @throws \Weft\Bus\PublishException|\Weft\Sql\SqlException
     */
    public function release(): int
    {
        $sent = 0;
        do {
            $batch = $this->publisher->carry('due <= ?', [Clock::milliseconds(Clock::now())], 'due');
            if ($batch->stuck !== []) {
                [$among, $parameters] = $this->dialect->among('id', $batch->stuck);
                $this->database->execute("UPDATE weft_delayed SET due = ? WHERE {$among}", [Clock::milliseconds(Clock::now() + self::RETRY_DELAY), ...$parameters]);
            }
            $sent += $batch->sent;
        } while ($batch->hasMore);

        return $sent;
    }

    /**
     * Makes a change outside of a caller's transaction. InnoDB locks gaps between rows, so workers that take due rows may deadlock with
     * those who add some.
     *
     * @template R
     *
     * @param \Closure(): R $change
     *
     * @return R
     */
    private function repeat(\Closure $change): mixed
    {
        for ($attempt = 1; $attempt < self::MAX_ATTEMPTS; $attempt++) {
            try {
                return $change();
            } catch (TransactionAbortedException) {
                delay(self::FIRST_PAUSE * 2 ** ($attempt - 1) * \random_int(1, 100) / 100);
            }
        }

        return $change();
    }

    /** @return list<mixed> */
    private static function row(string $id, Outgoing $message, string $queue, float $due): array
    {
        return [$id, Clock::milliseconds($due), $queue, $message->type, (int) $message->mustRoute, Headers::encode($message->headers), new Bytes($message->body)];
    }
}
