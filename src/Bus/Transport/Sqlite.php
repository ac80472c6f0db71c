<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\Internal\Sqlite\SqliteConsumer;
use Weft\Bus\Internal\Sqlite\Store;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Transaction;

/**
 * A broker in the tables `weft_*` of an SQLite file. It needs no server and survives a killed process.
 *
 * Any number of processes on one machine may use the file. The unacknowledged messages of a killed process are redelivered within about
 * a second, or immediately when another consumer starts; a file lock in `<database>-weft/` indicates a live consumer. When the handlers'
 * database is the same file, effects, published messages and the acknowledgement are one transaction: each effect happens exactly once.
 */
final class Sqlite implements DatabaseTransport, TemporaryQueues
{
    /** @var \WeakMap<SqliteConsumer, true> a consumer that is garbage-collected releases its file lock, and with it its messages */
    private readonly \WeakMap $consumers;

    private bool $closed = false;

    private function __construct(
        private readonly Store $store,
        private readonly ?Database $owned,
    ) {
        $this->consumers = new \WeakMap();
    }

    /**
     * @param Database|null $database     used instead of a connection of its own if it is the file that the DSN names
     * @param bool          $createTables see {@see Database::connect()}; `$database` has its own
     *
     * @throws \Weft\InvalidDsnError
     * @throws \Weft\Sql\ConnectionException
     */
    public static function connect(string $dsn, ?Database $database = null, bool $createTables = true): self
    {
        $own = Database::connect($dsn, createTables: $createTables);
        $file = Store::fileOf($own);
        if ($database !== null && $database->driver() === Driver::Sqlite && $file !== '' && Store::fileOf($database) === $file) {
            $own->close();

            return self::on($database);
        }

        return new self(Store::open($own), $own);
    }

    /** Uses an open database, which it does not close. */
    public static function on(Database $database): self
    {
        return new self(Store::open($database), null);
    }

    public function declare(string $queue, array $types): void
    {
        $this->store->declare($queue, $types);
    }

    public function openTemporary(string $queue): void
    {
        $this->store->declare($queue, [], withDeadLetters: false);
    }

    public function dropTemporary(string $queue): void
    {
        $this->store->drop($queue);
    }

    public function delete(string $queue): void
    {
        $this->store->drop($queue);
    }

    public function publish(iterable $messages, bool $confirmed = true): void
    {
        $this->store->publish($messages);
    }

    public function put(string $queue, array $messages): void
    {
        $this->store->put($queue, $messages);
    }

    public function consume(string $queue, int $prefetch): Consumer
    {
        $consumer = SqliteConsumer::open($this->store, $queue, $prefetch);
        $this->consumers[$consumer] = true;

        return $consumer;
    }

    public function depth(string $queue): int
    {
        return $this->store->depth($this->store->queueId($queue));
    }

    public function isConsumed(string $queue): bool
    {
        return $this->store->isConsumed($this->store->queueId($queue));
    }

    public function sharesDatabase(Database $database): bool
    {
        return $this->store->sharesDatabase($database);
    }

    public function publishIn(Transaction $transaction, ?string $queue, array $messages): void
    {
        $queue === null ? $this->store->publishIn($transaction, $messages) : $this->store->putIn($transaction, $this->store->queueId($queue, $transaction), $messages);
    }

    public function database(): Database
    {
        return $this->store->database;
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        foreach ($this->consumers as $consumer => $_) {
            $consumer->close();
        }
        $this->owned?->close();
    }
}
