<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\BrokerConflictException;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Transport;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\Sqlite;
use Weft\Bus\Internal\Sqlite\Store;
use Weft\Pool\PoolException;
use Weft\Runtime\ForkedProcessError;
use Weft\Sql\Database;
use Weft\Sql\DeadlockException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolationException;
use Weft\UsageError;

/**
 * Makes sure that the buses with one database have one broker.
 *
 * The rows of outbox and delayed messages do not say which broker they are for: each process publishes all of them to its own. With two brokers
 * the events of one would vanish at the other, which has no queue for them. So the database records the broker that uses it, in the row
 * {@see BROKER}, and each process that uses this broker, in a row of its own. Another broker may take its place when no message waits, and every
 * process has released the broker or has not used it for {@see DURATION}.
 *
 * The name of a broker contains neither host nor user, so that it stays the same when these change.
 *
 * @internal
 */
final class BrokerLease
{
    /** Seconds after its last use during which a broker keeps the database to itself. */
    private const DURATION = 180;

    /** Seconds between two records of its use, by each process. */
    private const RENEWAL = 60.0;

    /** Bytes of a name. */
    private const NAME_BYTES = 255;

    /** The id of the row of the broker; a lock of this row protects all. */
    private const BROKER = 1;

    /** The largest id; those of processes are drawn. */
    private const LARGEST_ID = 32_767;

    /** Attempts to record the use: others may be faster, and have drawn the same id. */
    private const ATTEMPTS = 8;

    /** Largest number of messages that is counted for a message. */
    private const MAX_COUNT = 1_000;

    /** Empty for a transport of the application's own, which is not checked; null before it is known. */
    private ?string $broker = null;

    /** When it was recorded last, by the monotonic clock. */
    private float $heldAt = -\INF;

    /** The id of the row of this process; null while it does not use the broker. */
    private ?int $user = null;

    /** Number of running calls of {@see during()}. */
    private int $uses = 0;

    private readonly Dialect $dialect;
    private readonly string $now;

    public function __construct(
        private readonly Database $database,
        private readonly Transport $transport,
    ) {
        $this->dialect = new Dialect($database);
        $this->now = $this->dialect->seconds();
    }

    /**
     * Records that the broker is in use, unless it was recorded a moment ago. Call it before messages are stored or published.
     *
     * @throws BrokerConflictException when another one uses the database
     * @throws SqlException|PoolException when the database cannot be read
     */
    public function hold(): void
    {
        if (Clock::monotonic() - $this->heldAt < self::RENEWAL) {
            return;
        }
        $broker = $this->broker ??= self::nameOf($this->transport, $this->database);
        if ($broker === '') {
            return;
        }
        for ($attempt = 0; $attempt < self::ATTEMPTS; $attempt++) {
            if ($this->attempt($broker)) {
                $this->heldAt = Clock::monotonic();

                return;
            }
        }
        throw new BrokerConflictException("Database \"{$this->database->name()}\" was changed by others in each of " . self::ATTEMPTS . " attempts to record that a bus on {$broker} uses it. Nothing was published; try again");
    }

    /**
     * Holds the broker while the closure stores or publishes messages.
     *
     * @template T
     *
     * @param \Closure(): T $work
     * @return T
     *
     * @throws BrokerConflictException when another one uses the database
     * @throws SqlException|PoolException when the database cannot be read
     */
    public function during(\Closure $work): mixed
    {
        $this->uses++;
        try {
            $this->hold();

            return $work();
        } finally {
            $this->uses--;
        }
    }

    /**
     * This process does not use the broker any more. If no other one does and no message waits, another broker may use the database at once. Later
     * calls of {@see hold()} record the use again. A failure leaves the record, which lapses by itself.
     */
    public function release(): void
    {
        if ($this->user === null || $this->uses > 0) {
            return;
        }
        [$user, $this->user, $this->heldAt] = [$this->user, null, -\INF];
        try {
            $this->database->transaction(fn(Transaction $transaction) => $this->releaseIn($transaction, $user));
        } catch (PoolException | SqlException | UsageError | ForkedProcessError) {
            // The database is not available, or closed.
        }
    }

    /** @return bool false when another process was faster */
    private function attempt(string $broker): bool
    {
        try {
            if ($this->database->execute('SELECT 1 FROM weft_broker WHERE id = ?', [self::BROKER])->value() === null) {
                $this->database->execute("INSERT INTO weft_broker (id, name, used_at) VALUES (?, ?, {$this->now})", [self::BROKER, $broker])->affected();
            }

            return $this->database->transaction(fn(Transaction $transaction): bool => $this->holdIn($transaction, $broker));
        } catch (UniqueViolationException | DeadlockException) {
            return false;
        } catch (PoolException | SqlException $exception) {
            if (DatabaseOutage::isOne($exception)) {
                // Nothing can be stored or taken from a read-only database either.
                return true;
            }
            throw $exception;
        }
    }

    /** @return bool false when the row of the broker was deleted meanwhile */
    private function holdIn(Transaction $transaction, string $broker): bool
    {
        $row = $transaction->execute("SELECT name, {$this->now} - used_at AS age FROM weft_broker WHERE id = ?{$this->dialect->forUpdate()}", [self::BROKER])->rows()[0] ?? null;
        if ($row === null) {
            return false;
        }
        if ($row['name'] !== $broker && ($row['age'] < self::DURATION || $this->hasMessages($transaction))) {
            throw $this->conflict($transaction, $broker, $row['name'], $row['age']);
        }
        if ($row['name'] !== $broker || $row['age'] >= self::RENEWAL) {
            $transaction->execute("UPDATE weft_broker SET name = ?, used_at = {$this->now} WHERE id = ?", [$broker, self::BROKER]);
        }
        $transaction->execute("DELETE FROM weft_broker WHERE id <> ? AND (name <> ? OR used_at <= {$this->now} - " . self::DURATION . ')', [self::BROKER, $broker]);
        // After a pause its row may have been deleted, and its id given to another process.
        $isMine = $this->user !== null && Clock::monotonic() - $this->heldAt < self::DURATION
            && $transaction->execute("SELECT 1 FROM weft_broker WHERE id = ? AND name = ?", [$this->user, $broker])->value() !== null;
        if ($isMine) {
            $transaction->execute("UPDATE weft_broker SET used_at = {$this->now} WHERE id = ?", [$this->user]);
        } else {
            $this->user = null;
            $user = \random_int(self::BROKER + 1, self::LARGEST_ID);
            $transaction->execute("INSERT INTO weft_broker (id, name, used_at) VALUES (?, ?, {$this->now})", [$user, $broker])->affected();
            $this->user = $user;
        }

        return true;
    }

    private function releaseIn(Transaction $transaction, int $user): void
    {
        $name = $transaction->execute("SELECT name FROM weft_broker WHERE id = ?{$this->dialect->forUpdate()}", [self::BROKER])->value();
        $transaction->execute('DELETE FROM weft_broker WHERE id = ? AND name = ?', [$user, $this->broker]);
        if ($name !== $this->broker || $this->hasMessages($transaction)) {
            return;
        }
        $others = $transaction->execute("SELECT 1 FROM weft_broker WHERE id <> ? AND used_at > {$this->now} - " . self::DURATION . ' LIMIT 1', [self::BROKER])->value();
        $others === null && $transaction->execute('DELETE FROM weft_broker');
    }

    private function hasMessages(Transaction $transaction): bool
    {
        return $transaction->execute('SELECT 1 FROM weft_outbox LIMIT 1')->value() !== null || $transaction->execute('SELECT 1 FROM weft_delayed LIMIT 1')->value() !== null;
    }

    private function conflict(Transaction $transaction, string $broker, string $other, int $age): BrokerConflictException
    {
        $count = static fn(string $table): int => (int) $transaction->execute("SELECT count(*) FROM (SELECT 1 FROM {$table} LIMIT " . self::MAX_COUNT . ') AS counted')->value();
        [$outbox, $delayed] = [$count('weft_outbox'), $count('weft_delayed')];
        $wayOut = $outbox + $delayed > 0
            ? "If the bus has moved, let it publish what waits, {$outbox} in weft_outbox and {$delayed} in weft_delayed, or run `DELETE FROM weft_broker` to publish it to the new broker"
            : 'No message waits. If the bus has moved, stop its processes: the last one that ends normally releases the database; after a crash it is free in '
                . \max(0, self::DURATION - $age) . ' s, or at once after `DELETE FROM weft_broker`';

        return new BrokerConflictException("Database \"{$this->database->name()}\" holds the outbox and the delayed messages of a bus on {$other}, used {$age} s ago. A bus on {$broker} would publish them to its own broker, where they would be lost:"
            . " give each bus a database or a schema of its own. {$wayOut}");
    }

    private static function nameOf(Transport $transport, Database $database): string
    {
        $name = match (true) {
            $transport instanceof DatabaseTransport && $transport->sharesDatabase($database) => 'this database',
            $transport instanceof RabbitMq => "RabbitMQ, virtual host \"{$transport->virtualHost()}\"",
            $transport instanceof Postgres => (string) $transport->database()->execute("SELECT 'PostgreSQL, database \"' || current_database() || '\", schema \"' || current_schema() || '\"'")->value(),
            $transport instanceof Sqlite => 'SQLite, file "' . \basename(Store::fileOf($transport->database())) . '"',
            $transport instanceof Memory => 'the memory of a process',
            default => '',
        };

        return Identifier::fit($name, self::NAME_BYTES);
    }
}
