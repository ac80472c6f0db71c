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
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\UniqueViolationException;

/**
 * Makes sure that the buses with one database have one broker.
 *
 * The rows of outbox and delayed messages do not say which broker they are for: each process publishes all of them to its own. With two brokers
 * the events of one would vanish at the other, which has no queue for them. So the database records the broker that uses it. Another one may
 * take its place when it has not been used for {@see DURATION} and no message waits.
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

    /** The only row. */
    private const ROW = 1;

    /** Empty for a transport of the application's own, which is not checked; null before it is known. */
    private ?string $broker = null;

    /** When it was recorded last, by the monotonic clock. */
    private float $heldAt = -\INF;

    private readonly string $now;

    public function __construct(
        private readonly Database $database,
        private readonly Transport $transport,
    ) {
        $this->now = (new Dialect($database))->seconds();
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
        // A second look is enough: after it the row says which other one was first.
        $this->attempt($broker) || $this->attempt($broker) || throw $this->conflict($broker, null);
        $this->heldAt = Clock::monotonic();
    }

    /** @return bool false when another process was faster */
    private function attempt(string $broker): bool
    {
        $row = $this->database->execute("SELECT name, {$this->now} - used_at AS age FROM weft_broker WHERE id = ?", [self::ROW])->rows()[0] ?? null;
        try {
            if ($row === null) {
                $this->database->execute("INSERT INTO weft_broker (id, name, used_at) VALUES (?, ?, {$this->now})", [self::ROW, $broker])->affected();

                return true;
            }
            if ($row['name'] === $broker) {
                // Others have recorded it already, or delete it meanwhile on purpose.
                $row['age'] < self::RENEWAL || $this->database->execute("UPDATE weft_broker SET used_at = {$this->now} WHERE id = ? AND name = ?", [self::ROW, $broker])->affected();

                return true;
            }
            if ($row['age'] < self::DURATION || $this->hasMessages()) {
                throw $this->conflict($broker, $row);
            }

            return $this->database->execute("UPDATE weft_broker SET name = ?, used_at = {$this->now} WHERE id = ? AND name = ? AND used_at <= {$this->now} - " . self::DURATION, [$broker, self::ROW, $row['name']])->affected() === 1;
        } catch (UniqueViolationException) {
            return false;
        } catch (PoolException | SqlException $exception) {
            if (DatabaseOutage::isOne($exception)) {
                // Nothing can be stored or taken from a read-only database either.
                return true;
            }
            throw $exception;
        }
    }

    private function hasMessages(): bool
    {
        return $this->database->execute('SELECT 1 FROM weft_outbox LIMIT 1')->value() !== null || $this->database->execute('SELECT 1 FROM weft_delayed LIMIT 1')->value() !== null;
    }

    /** @param array<string, mixed>|null $row */
    private function conflict(string $broker, ?array $row): BrokerConflictException
    {
        $other = $row === null ? 'another broker' : "{$row['name']}, used {$row['age']} s ago";

        return new BrokerConflictException("Database \"{$this->database->name()}\" holds the outbox and the delayed messages of a bus on {$other}. A bus on {$broker} would publish them to its own broker, where they would be lost:"
            . ' give each bus a database or a schema of its own. If the bus has moved, stop its old workers, publish what waits there, and run `DELETE FROM weft_broker`');
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
