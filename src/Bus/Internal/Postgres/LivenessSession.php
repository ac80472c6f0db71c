<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Pool\PoolException;
use Weft\Runtime\Mutex;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\shield;

/**
 * Shows that the consumers of this process are alive: an open transaction with an advisory lock per consumer. It reads and writes nothing,
 * so it does not hold back vacuum. PostgreSQL releases the locks when the connection ends: immediately with the process, and after
 * {@see IDLE_TIMEOUT} seconds with its machine or network.
 *
 * @internal
 */
final class LivenessSession
{
    /** Seconds, approximately, after which the server ends a silent connection. */
    public const IDLE_TIMEOUT = 20.0;

    /** Locks are specific to a broker: another schema in the same database has others. */
    private const LOCK = "(('weft_consumers'::regclass::oid::bigint & 2147483647)::int)";

    /** Keepalive of the server. */
    private const SETTINGS = [
        'SET LOCAL tcp_keepalives_idle = 10',
        'SET LOCAL tcp_keepalives_interval = 3',
        'SET LOCAL tcp_keepalives_count = 3',
    ];

    /** Sent last in each round trip: a statement that reads keeps its snapshot, and with it deleted rows, until the next one. */
    private const END_SNAPSHOT = 'SET LOCAL idle_in_transaction_session_timeout = 0';

    private ?Transaction $session = null;

    /** Counts sessions: the locks of an earlier session are released, and with them the messages of its consumers. */
    private int $number = 0;

    /** Only one task at a time uses the transaction. */
    private readonly Mutex $turn;

    public function __construct(private readonly Database $database)
    {
        $this->turn = new Mutex();
    }

    /** The current session; 0 while there is none. */
    public function session(): int
    {
        return $this->session?->isOpen() === true ? $this->number : 0;
    }

    /**
     * Registers a consumer of a queue.
     *
     * @return int its id
     * @throws SqlException
     */
    public function enter(int $queue): int
    {
        return shield(function () use ($queue): int {
            do {
                // Outside of the session: a sequence may assign a transaction id, which holds back vacuum.
                $id = $this->database->execute("SELECT nextval('weft_consumer_numbers')::int")->value();
            } while (!$this->turn->synchronized(fn(): bool => $this->lock($id)));
            // After its lock, without which others would consider it dead.
            $this->database->execute('INSERT INTO weft_consumers (id, queue_id) VALUES (?, ?)', [$id, $queue]);

            return $id;
        });
    }

    /** Checks whether the session is alive; {@see session()} returns the result. */
    public function check(): void
    {
        try {
            shield(fn() => $this->turn->synchronized(function (): void {
                if ($this->session() !== 0) {
                    $this->session?->execute(self::END_SNAPSHOT);
                    $this->session?->flush();
                }
            }));
        } catch (PoolException | SqlException) {
            $this->leave();
        }
    }

    /** Releases all locks. */
    public function leave(): void
    {
        $session = $this->session;
        $this->session = null;
        $session?->abandon();
    }

    /**
     * Part of a statement: whether the consumer `$column` is dead. It is locked until the end of the transaction then, so that
     * only one looks after it.
     */
    public static function isDead(string $column): string
    {
        return 'pg_try_advisory_xact_lock(' . self::LOCK . ", {$column})";
    }

    private function lock(int $id): bool
    {
        try {
            $session = $this->open();
            $locked = $session->execute('SELECT pg_try_advisory_xact_lock(' . self::LOCK . ', ?::int)', [$id]);
            $session->execute(self::END_SNAPSHOT);
            $session->flush();

            return $locked->value();
        } catch (PoolException | SqlException $exception) {
            $this->leave();
            throw $exception;
        }
    }

    private function open(): Transaction
    {
        if ($this->session() !== 0 && $this->session !== null) {
            return $this->session;
        }
        $session = $this->database->begin();
        foreach (self::SETTINGS as $setting) {
            $session->execute($setting);
        }
        $session->execute(self::END_SNAPSHOT);
        $session->flush();
        $this->number++;

        return $this->session = $session;
    }
}
