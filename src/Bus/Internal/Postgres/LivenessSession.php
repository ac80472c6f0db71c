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
 * Says that consumers of this process live: an open transaction that holds an advisory lock for each of them. It reads and writes
 * nothing, so it keeps no vacuum from its work. PostgreSQL lets go of the locks as soon as the connection is gone: at once
 * when its process is, and after {@see SILENCE} when its machine or the network is.
 *
 * @internal
 */
final class LivenessSession
{
    /** Seconds, about, after which the server gives up a connection from which nothing comes. */
    public const SILENCE = 20.0;

    /** The locks of one broker: whoever has another schema in the same database has other ones. */
    private const LOCK = "(('weft_consumers'::regclass::oid::bigint & 2147483647)::int)";

    /** When the server asks whether somebody is still there. */
    private const SETTINGS = [
        'SET LOCAL tcp_keepalives_idle = 10',
        'SET LOCAL tcp_keepalives_interval = 3',
        'SET LOCAL tcp_keepalives_count = 3',
    ];

    /**
     * Comes last in each round trip: a statement that reads keeps its snapshot, and with it the rows that others delete, until the next
     * one is there.
     */
    private const RELEASE = 'SET LOCAL idle_in_transaction_session_timeout = 0';

    private ?Transaction $session = null;

    /** Counts the sessions: locks of an earlier one are gone, and with them what their consumers had taken. */
    private int $number = 0;

    /** A transaction is one task's at a time. */
    private readonly Mutex $turn;

    public function __construct(private readonly Database $database)
    {
        $this->turn = new Mutex();
    }

    /** The session whose locks count; 0 while there is none. */
    public function session(): int
    {
        return $this->session?->isOpen() === true ? $this->number : 0;
    }

    /**
     * Enters a consumer of a queue.
     *
     * @return int its id
     * @throws SqlException
     */
    public function enter(int $queue): int
    {
        return shield(function () use ($queue): int {
            do {
                // Outside of the session: a number from a sequence may give the transaction an id, and that keeps vacuum from its work.
                $id = $this->database->execute("SELECT nextval('weft_consumer_numbers')::int")->value();
            } while (!$this->turn->synchronized(fn(): bool => $this->lock($id)));
            // Only now may others see it: without its lock it would count as dead.
            $this->database->execute('INSERT INTO weft_consumers (id, queue_id) VALUES (?, ?)', [$id, $queue]);

            return $id;
        });
    }

    /** Asks whether the session still lives; {@see session()} says it afterwards. */
    public function check(): void
    {
        try {
            shield(fn() => $this->turn->synchronized(function (): void {
                if ($this->session() !== 0) {
                    $this->session?->execute(self::RELEASE);
                    $this->session?->flush();
                }
            }));
        } catch (PoolException | SqlException) {
            $this->leave();
        }
    }

    /** Gives up all locks. */
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
            $session->execute(self::RELEASE);
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
        $session->execute(self::RELEASE);
        $session->flush();
        $this->number++;

        return $this->session = $session;
    }
}
