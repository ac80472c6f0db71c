<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Result;
use Weft\Sql\Transaction;

/**
 * The tables of recorded events and where the databases' SQL for them differs.
 *
 * Every event has a position among all. In SQLite, which has one writer, they are given out in the order of commits. In MariaDB a
 * locked counter sees to that. In PostgreSQL transactions that commit at the same time do not wait for each other; there readers
 * stop at a {@see Horizon}.
 *
 * @internal
 */
final class Storage
{
    /**
     * Since 11.6.2 MariaDB refuses to change or lock a row that another transaction has changed since this one first read anything (error 1020).
     * What this class writes and locks is right with the newest row: the counter is any transaction's, and versions show conflicts. MySQL skips the comment.
     */
    private const NEWEST_ROW = '/*M!110602 SET STATEMENT innodb_snapshot_isolation = OFF FOR */ ';

    private readonly Driver $driver;
    private readonly Horizon $horizon;
    private bool $isReady = false;

    public function __construct(public readonly Database $database)
    {
        $this->driver = $database->driver();
        $this->horizon = new Horizon();
        if ($this->driver === Driver::Sqlite) {
            // Later a transaction of the caller may be its only writer.
            $this->prepare();
        }
    }

    public function prepare(): void
    {
        if ($this->isReady) {
            return;
        }
        (new Migrator($this->database))->ensure(Tables::component());
        $this->isReady = true;
    }

    /**
     * @param non-empty-list<array{string, int, string, string}> $events type, schema version, headers and body, for the versions after `$version`
     *
     * @return bool false when the stream has no such version: nothing was stored
     *
     * @throws \Weft\Sql\UniqueViolationException when one of these versions is there
     */
    public function append(Transaction $transaction, string $stream, int $version, array $events, int $now): bool
    {
        if ($this->driver === Driver::Mysql) {
            $this->write($transaction, 'UPDATE weft_event_counter SET position = LAST_INSERT_ID(position + ?)', [\count($events)]);
        }
        $insert = $this->driver === Driver::Mysql
            ? 'INSERT INTO weft_events (position, stream, version, type, schema_version, headers, body, recorded_at) SELECT LAST_INSERT_ID() - ?, ?, ?, ?, ?, ?, ?, ? FROM DUAL'
            : 'INSERT INTO weft_events (stream, version, type, schema_version, headers, body, recorded_at) SELECT ?, ?, ?, ?, ?, ?, ?';
        $position = $this->driver === Driver::Mysql ? \count($events) : null;
        foreach ($events as [$type, $schema, $headers, $body]) {
            // The unique versions refuse all but the first of those that follow one event; this, a gap.
            [$where, $previous] = $version === 0 ? ['', []] : [' WHERE EXISTS (SELECT 1 FROM weft_events WHERE stream = ? AND version = ?)', [$stream, $version]];
            $row = [$stream, ++$version, $type, $schema, $headers, $body, $now, ...$previous];
            $stored = $this->write($transaction, $insert . $where, $position === null ? $row : [--$position, ...$row]);
        }

        // A conflict occurs here, where it can be reported as such.
        return $stored->affected() === 1;
    }

    /** Replaces an event; its version, position and time stay, its headers do not. */
    public function replace(Transaction $transaction, string $stream, int $version, string $type, int $schema, string $body): void
    {
        $this->write($transaction, "UPDATE weft_events SET type = ?, schema_version = ?, headers = '{}', body = ? WHERE stream = ? AND version = ?", [$type, $schema, $body, $stream, $version]);
    }

    /** @return list<array<string, mixed>> of one stream, by version */
    public function stream(Connection $connection, string $stream, int $after): array
    {
        return $connection->execute('SELECT * FROM weft_events WHERE stream = ? AND version > ? ORDER BY version', [$stream, $after])->rows();
    }

    /** @return list<array<string, mixed>> of all streams, by position; what may still get one before it is left for later */
    public function read(int $after, int $limit): array
    {
        if ($this->driver !== Driver::Postgres) {
            return $this->database->execute("SELECT * FROM weft_events WHERE position > ? ORDER BY position LIMIT {$limit}", [$after])->rows();
        }
        $marked = $this->horizon->marked();
        if ($marked > 0) {
            // Before the rows are read: they contain the events of a transaction that has ended by then.
            $this->horizon->advance($marked, $this->writers());
        }
        [$rows, $safe] = $this->look($after, $limit);
        if (\count($safe) === \count($rows)) {
            return $safe;
        }
        $last = $rows[\count($rows) - 1]['position'];
        if ($this->horizon->wants($last)) {
            $this->horizon->mark($last, $this->writers());
        }

        // The transaction that held them back has usually ended by now.
        return $safe !== [] ? $safe : $this->look($after, $limit)[1];
    }

    /**
     * The last snapshot of a schema version, and the events after it.
     *
     * One statement reads both: between two, others may commit another snapshot or delete it, and PostgreSQL shows each statement what is
     * committed when it begins.
     *
     * @return array{array<string, mixed>|null, list<array<string, mixed>>}
     */
    public function load(Transaction $transaction, string $stream, int $schema): array
    {
        // No event has the position 0.
        $rows = $transaction->execute(
            "SELECT 0 AS position, stream, version, '' AS type, schema_version, '' AS headers, state AS body, 0 AS recorded_at
            FROM weft_snapshots WHERE stream = ? AND schema_version = ?
            UNION ALL
            SELECT position, stream, version, type, schema_version, headers, body, recorded_at FROM weft_events
            WHERE stream = ? AND version > COALESCE((SELECT version FROM weft_snapshots WHERE stream = ? AND schema_version = ?), 0)
            ORDER BY version",
            [$stream, $schema, $stream, $stream, $schema],
        )->rows();
        $snapshot = ($rows[0]['position'] ?? null) === 0 ? \array_shift($rows) : null;

        return [$snapshot, $rows];
    }

    public function snapshot(Transaction $transaction, string $stream, int $version, int $schema, string $state): void
    {
        $this->forgetSnapshot($transaction, $stream);
        $this->write($transaction, 'INSERT INTO weft_snapshots (stream, version, schema_version, state) VALUES (?, ?, ?, ?)', [$stream, $version, $schema, $state]);
    }

    public function forgetSnapshot(Transaction $transaction, string $stream): void
    {
        $this->write($transaction, 'DELETE FROM weft_snapshots WHERE stream = ?', [$stream]);
    }

    /** @return bool whether the owner has the value until the transaction ends */
    public function claim(Transaction $transaction, string $name, string $value, string $owner): bool
    {
        $insert = 'INTO weft_unique_values (name, value, owner) VALUES (?, ?, ?)';
        $added = $this->write($transaction, $this->driver === Driver::Mysql ? "INSERT IGNORE {$insert}" : "INSERT {$insert} ON CONFLICT DO NOTHING", [$name, $value, $owner]);
        if ($added->affected() === 1) {
            return true;
        }
        $lock = match ($this->driver) {
            Driver::Postgres => ' FOR SHARE',
            Driver::Mysql => ' LOCK IN SHARE MODE',
            Driver::Sqlite => '',
        };

        return $this->valueOwner($transaction, $name, $value, $lock) === $owner;
    }

    /** @return bool whether the owner has the value; no other transaction can change or release it then */
    public function lock(Transaction $transaction, string $name, string $value, string $owner): bool
    {
        return $this->valueOwner($transaction, $name, $value, $this->driver === Driver::Sqlite ? '' : ' FOR UPDATE') === $owner;
    }

    public function owner(Connection $connection, string $name, string $value): ?string
    {
        // In MariaDB a plain SELECT would read the snapshot of the transaction's start.
        return $this->valueOwner($connection, $name, $value, $this->driver === Driver::Mysql && $connection instanceof Transaction ? ' LOCK IN SHARE MODE' : '');
    }

    public function release(Connection $connection, string $name, string $value, string $owner): bool
    {
        return $this->write($connection, 'DELETE FROM weft_unique_values WHERE name = ? AND value = ? AND owner = ?', [$name, $value, $owner])->affected() === 1;
    }

    public function releaseAll(Connection $connection, string $name, string $owner): int
    {
        return $this->write($connection, 'DELETE FROM weft_unique_values WHERE name = ? AND owner = ?', [$name, $owner])->affected();
    }

    /** The position of a projection. */
    public function reached(string $projection): int
    {
        return $this->database->execute('SELECT position FROM weft_projections WHERE name = ?', [$projection])->value() ?? 0;
    }

    /** @return bool false when another process has advanced it in the meantime */
    public function move(Transaction $transaction, string $projection, int $from, int $to): bool
    {
        if ($from === 0) {
            $insert = 'INTO weft_projections (name, position) VALUES (?, 0)';
            $this->write($transaction, $this->driver === Driver::Mysql ? "INSERT IGNORE {$insert}" : "INSERT {$insert} ON CONFLICT DO NOTHING", [$projection]);
        }

        return $this->write($transaction, 'UPDATE weft_projections SET position = ? WHERE name = ? AND position = ?', [$to, $projection, $from])->affected() === 1;
    }

    public function reset(string $projection): void
    {
        $this->database->execute('DELETE FROM weft_projections WHERE name = ?', [$projection]);
    }

    private function valueOwner(Connection $connection, string $name, string $value, string $lock): ?string
    {
        $select = "SELECT owner FROM weft_unique_values WHERE name = ? AND value = ?{$lock}";

        return ($lock === '' ? $connection->execute($select, [$name, $value]) : $this->write($connection, $select, [$name, $value]))->value();
    }

    /**
     * Also reads with a lock.
     *
     * @param list<mixed> $parameters
     */
    private function write(Connection $connection, string $sql, array $parameters): Result
    {
        return $connection->execute($this->driver === Driver::Mysql ? self::NEWEST_ROW . $sql : $sql, $parameters);
    }

    /** @return array{list<array<string, mixed>>, list<array<string, mixed>>} the next rows, and those of them that nothing can come before */
    private function look(int $after, int $limit): array
    {
        $settled = $this->horizon->settled();
        $rows = $this->database->execute("SELECT * FROM weft_events WHERE position > ? ORDER BY position LIMIT {$limit}", [$after])->rows();

        return [$rows, Horizon::within($rows, $after, $settled)];
    }

    /**
     * The transactions of PostgreSQL that may have positions whose events are not visible. An INSERT locks the table before it takes a position,
     * and the lock is released after the commit has become visible.
     *
     * The oldest running transaction of the server would not do instead: transactions without events, also those of other databases, would
     * hold back readers.
     *
     * @return list<string> virtual transaction ids
     */
    private function writers(): array
    {
        /** @var list<string> */
        return $this->database->execute(
            "SELECT DISTINCT virtualtransaction FROM pg_locks
            WHERE locktype = 'relation' AND relation = 'weft_events'::regclass AND mode = 'RowExclusiveLock' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )->column();
    }
}
