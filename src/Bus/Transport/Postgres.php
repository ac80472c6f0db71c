<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Postgres\MessageNotifications;
use Weft\Bus\Internal\Postgres\ConnectionEvents;
use Weft\Bus\Internal\Postgres\PostgresConsumer;
use Weft\Bus\Internal\Postgres\LivenessSession;
use Weft\Bus\Internal\Postgres\Publisher;
use Weft\Bus\Internal\Postgres\AckBatcher;
use Weft\Bus\Internal\Postgres\Store;
use Weft\Bus\Internal\Postgres\Tables;
use Weft\Bus\Internal\Postgres\Vacuum;
use Weft\Bus\Internal\Postgres\LivenessMonitor;
use Weft\Bus\TransportException;
use Weft\Pool\PoolException;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * A broker in the tables `weft_*` of a PostgreSQL database, for applications without another broker.
 *
 * Any number of processes on any number of machines may use it. The unacknowledged messages of a killed process are redelivered within
 * about a second, those of a lost machine within half a minute. When the handlers' transactions reach the same tables, effects,
 * published messages and the acknowledgement are one transaction: each effect happens exactly once.
 *
 * Messages with the highest priority ({@see \Weft\Bus\Header::PRIORITY}, 0 to 9) are delivered first. `docs/reference/bus.md` describes the
 * implementation.
 */
final class Postgres implements DatabaseTransport, ReportingTransport, TemporaryQueues
{
    /** One connection holds the liveness session; the others fetch, publish and acknowledge. */
    private const CONNECTIONS = 4;

    /** With fewer connections these would wait for each other. */
    private const LEAST_CONNECTIONS = 3;

    private readonly LivenessSession $presence;
    private readonly MessageNotifications $arrivals;
    private readonly Publisher $publisher;
    private readonly AckBatcher $settlements;
    private readonly Vacuum $vacuum;
    private readonly LivenessMonitor $watch;
    private readonly ConnectionEvents $notices;

    /** @var array<int, PostgresConsumer> open ones */
    private array $consumers = [];

    private bool $closed = false;

    private function __construct(
        private readonly Store $store,
        private readonly ?Database $owned,
    ) {
        $this->presence = new LivenessSession($store->database);
        $this->arrivals = new MessageNotifications($store->database);
        $this->notices = new ConnectionEvents();
        $this->publisher = new Publisher($store, $this->arrivals);
        $this->vacuum = new Vacuum($store->database);
        $this->settlements = new AckBatcher($store, $this->vacuum, $this->arrivals->announce(...));
        $this->watch = new LivenessMonitor($store, $this->presence, $this->arrivals, $this->notices);
    }

    /**
     * Opens at most five connections beside those of the handlers' database.
     *
     * @param string $dsn `postgres://user:password@host:5432/database`, as for a {@see Database}; a connection pooler in between must be
     *                    in session mode
     *
     * @param bool $createTables see {@see Database::connect()}
     *
     * @throws \Weft\InvalidDsnError
     * @throws TransportException when the database cannot be reached or the tables cannot be created
     */
    public static function connect(string $dsn, bool $createTables = true): self
    {
        $database = Database::connect($dsn, new PoolOptions(size: self::CONNECTIONS, name: 'broker'), createTables: $createTables);
        try {
            return new self(self::prepared($database), $database);
        } catch (\Throwable $thrown) {
            $database->close();
            throw $thrown;
        }
    }

    /**
     * Uses an open database, which it does not close. A running consumer occupies one of its connections, and opens one outside of the
     * pool for notifications.
     *
     * @throws \ValueError when it is not PostgreSQL, or its pool has fewer than three connections
     * @throws TransportException
     */
    public static function on(Database $database): self
    {
        if ($database->driver() !== Driver::Postgres) {
            throw new \ValueError("The PostgreSQL transport needs a PostgreSQL database, got {$database->driver()->name}");
        }
        /** @var int $size */
        $size = $database->stats()['size'] ?? self::LEAST_CONNECTIONS;
        if ($size < self::LEAST_CONNECTIONS) {
            throw new \ValueError('The PostgreSQL transport needs a pool of at least ' . self::LEAST_CONNECTIONS . " connections, got one of {$size}");
        }

        return new self(self::prepared($database), null);
    }

    public function declare(string $queue, array $types): void
    {
        $this->make($queue, $types, withDeadLetters: true);
    }

    public function openTemporary(string $queue): void
    {
        $this->make($queue, [], withDeadLetters: false);
    }

    public function dropTemporary(string $queue): void
    {
        $this->delete($queue);
    }

    public function delete(string $queue): void
    {
        try {
            $this->store->queues->drop($queue);
        } catch (PoolException | SqlException $exception) {
            throw new TransportException("Cannot delete queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    public function publish(iterable $messages, bool $confirmed = true): void
    {
        $this->publisher->publish($messages);
    }

    public function put(string $queue, array $messages): void
    {
        $this->publisher->put($queue, $messages);
    }

    public function publishIn(Transaction $transaction, ?string $queue, array $messages): void
    {
        $queue === null
            ? $this->publisher->in($transaction, $messages)
            : $this->store->insertInto($transaction, $queue, $messages);
    }

    public function consume(string $queue, int $prefetch): Consumer
    {
        $id = $this->queueId($queue);
        $consumer = new PostgresConsumer(
            $this->store,
            $this->presence,
            $this->arrivals,
            $this->settlements,
            $this->vacuum,
            $this->publisher,
            $this->notices,
            $queue,
            $id,
            $prefetch,
            $this->forget(...),
        );
        $this->watch->begin();

        return $this->consumers[\spl_object_id($consumer)] = $consumer;
    }

    public function depth(string $queue): int
    {
        $id = $this->queueId($queue);
        try {
            return $this->store->queues->depth($id);
        } catch (PoolException | SqlException $exception) {
            throw new TransportException("Queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    public function isConsumed(string $queue): bool
    {
        $id = $this->queueId($queue);
        try {
            $this->store->releaseDead();

            return $this->store->queues->isConsumed($id);
        } catch (PoolException | SqlException $exception) {
            throw new TransportException("Queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    public function sharesDatabase(Database $database): bool
    {
        return $this->store->sharesDatabase($database);
    }

    public function database(): Database
    {
        return $this->store->database;
    }

    /** Logs when the server becomes unavailable and available again. */
    public function report(LoggerInterface $logger): void
    {
        $this->notices->follow($logger);
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        foreach ($this->consumers as $consumer) {
            $consumer->close();
        }
        $this->presence->leave();
        $this->owned?->close();
    }

    private function forget(PostgresConsumer $consumer): void
    {
        if (isset($this->consumers[\spl_object_id($consumer)])) {
            unset($this->consumers[\spl_object_id($consumer)]);
            $this->watch->end();
        }
    }

    /** @param list<string> $types */
    private function make(string $queue, array $types, bool $withDeadLetters): void
    {
        try {
            $this->store->queues->declare($queue, $types, $withDeadLetters);
        } catch (PoolException | SqlException $exception) {
            throw new TransportException("Cannot declare queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    private function queueId(string $queue): int
    {
        try {
            return $this->store->queues->id($queue);
        } catch (PoolException | SqlException $exception) {
            throw new TransportException("Queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    private static function prepared(Database $database): Store
    {
        try {
            (new Migrator($database))->ensure(Tables::component());
        } catch (PoolException | SqlException $exception) {
            throw new TransportException("Cannot connect to the broker in PostgreSQL: {$exception->getMessage()}", $exception);
        }

        return new Store($database);
    }
}
