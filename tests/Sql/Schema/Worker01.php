<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Schema;

use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\DeadlockException;
use Weft\Sql\Driver;
use Weft\Sql\LockNotAvailableException;
use Weft\Sql\SerializationFailureException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;
use Weft\Sql\UniqueViolationException;

use function Weft\delay;

/**
 * What a worker of Weft 0.1 does to its tables: the statements are those of that release, on the tables whose names or columns have changed
 * since. Each round handles one message: it is received, crashes, is redelivered, blocks a key behind which another one waits, belongs to a
 * saga and has a large body.
 */
final class Worker01
{
    /** How often in a row a table may be missing while it gets triggers. */
    private const MISSES = 5;

    /** @var list<string> ids of messages whose inbox row was committed */
    public array $handled = [];

    /** @var list<string> keys that are blocked, each with a message that waits behind it */
    public array $blocked = [];

    /** @var list<string> ids that are associated, redelivered and stored as claim checks */
    public array $kept = [];

    /** @var list<string> what the database said of tables that it did not find */
    public array $missing = [];

    public bool $isStopping = false;
    public int $rounds = 0;

    public function __construct(private readonly Database $database, private readonly string $name) {}

    public function run(): void
    {
        while (!$this->isStopping) {
            $this->round(\sprintf('%s-%06d', $this->name, ++$this->rounds));
            delay(0.001);
        }
    }

    /** The value of the inbox's column `body`. */
    public static function fingerprint(string $id): int
    {
        return \unpack('q', \hash('xxh3', $id, true))[1];
    }

    private function round(string $id): void
    {
        $this->attempt(fn() => $this->countAttempt($id));
        $this->attempt(fn() => $this->countAttempt($id));
        self::equal(2, $this->database->execute('SELECT attempts FROM weft_attempts WHERE message_id = ? AND consumer = ?', [$id, 42])->value(), 'attempts');

        $this->attempt(fn() => $this->handle($id));
        $this->handled[] = $id;
        self::equal(self::fingerprint($id), $this->database->execute('SELECT body FROM weft_inbox WHERE message_id = ? AND consumer = ?', [$id, 42])->value(), 'inbox');
        try {
            $this->attempt(fn() => $this->handle($id));
            throw new \LogicException("Message {$id} was handled twice");
        } catch (UniqueViolationException) {
        }

        $this->attempt(fn() => $this->block($id));
        $this->blocked[] = $id;
        $this->release($id);
        $this->attempt(fn() => $this->database->execute('INSERT INTO weft_saga_values (saga, name, value, id) VALUES (?, ?, ?, ?)', ['checkout', 'parcel', $id, $id])->affected());
        $this->attempt(fn() => $this->database->execute('INSERT INTO weft_bodies (id, kept_at, body) VALUES (?, ?, ?)', [$id, 1763800000, "body of {$id}"])->affected());
        self::equal("body of {$id}", $this->database->execute('SELECT body FROM weft_bodies WHERE id = ?', [$id])->value(), 'claim check');
        if ($this->rounds % 2 === 0) {
            $this->kept[] = $id;

            return;
        }
        $this->attempt(fn() => $this->database->execute('DELETE FROM weft_attempts WHERE message_id = ? AND consumer = ?', [$id, 42])->affected());
        $this->attempt(fn() => $this->database->execute('DELETE FROM weft_saga_values WHERE saga = ? AND name = ? AND value = ? AND id = ?', ['checkout', 'parcel', $id, $id])->affected());
        $this->attempt(fn() => $this->database->execute('DELETE FROM weft_bodies WHERE id = ?', [$id])->affected());
    }

    private function countAttempt(string $id): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($id): void {
            $updated = $transaction->execute('UPDATE weft_attempts SET attempts = attempts + 1, noted_at = ? WHERE message_id = ? AND consumer = ?', [\time(), $id, 42]);
            if ($updated->affected() === 0) {
                $transaction->execute('INSERT INTO weft_attempts (message_id, consumer, attempts, noted_at) VALUES (?, ?, 1, ?)', [$id, 42, \time()]);
            }
        });
    }

    private function handle(string $id): void
    {
        $this->database->transaction(static function (Connection $transaction) use ($id): void {
            $transaction->execute('INSERT INTO weft_inbox (message_id, consumer, body, handled_at) VALUES (?, ?, ?, ?)', [$id, 42, self::fingerprint($id), \time()]);
            $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$id]);
        });
    }

    private function block(string $id): void
    {
        $this->database->transaction(static function (Transaction $transaction) use ($id): void {
            $transaction->execute('DELETE FROM weft_keys WHERE queue = ? AND order_key = ?', ['bank', $id]);
            $transaction->execute('INSERT INTO weft_keys (queue, order_key, head, blocked_at, released) VALUES (?, ?, ?, ?, 0)', ['bank', $id, "{$id}-head", \time()]);
            $transaction->execute('INSERT INTO weft_waiting (queue, order_key, message_id, type, headers, body) VALUES (?, ?, ?, ?, ?, ?)', ['bank', $id, "{$id}-next", 'deposit', '{}', 'body']);
        });
    }

    /** Every other key is released and handles what waited behind it. */
    private function release(string $id): void
    {
        $waiting = $this->database->execute('SELECT place, type, headers, body FROM weft_waiting WHERE queue = ? AND order_key = ? ORDER BY place LIMIT 100', ['bank', $id])->rows();
        self::equal(1, \count($waiting), 'waiting messages');
        if ($this->rounds % 2 === 0) {
            return;
        }
        $this->attempt(fn() => $this->database->execute('UPDATE weft_keys SET released = 1 WHERE queue = ? AND order_key = ?', ['bank', $id])->affected());
        $this->attempt(fn() => $this->database->execute('DELETE FROM weft_waiting WHERE place = ?', [$waiting[0]['place']])->affected());
        $this->attempt(fn() => $this->database->execute('DELETE FROM weft_keys WHERE queue = ? AND order_key = ?', ['bank', $id])->affected());
        \array_pop($this->blocked);
    }

    /**
     * Repeats what the database refused because of other transactions, as the bus does. A statement that MariaDB holds back while a trigger is
     * created probably fires that trigger without having opened the table that it writes to: error 1146, and nothing has changed.
     */
    private function attempt(\Closure $work): void
    {
        for ($missing = 0;;) {
            try {
                $work();

                return;
            } catch (UndefinedTableException $thrown) {
                $this->missing[] = $thrown->getMessage();
                if (++$missing > self::MISSES) {
                    throw $thrown;
                }
                delay(0.01);
            } catch (DeadlockException | LockNotAvailableException | SerializationFailureException) {
                delay(0.01);
            }
        }
    }

    private static function equal(mixed $expected, mixed $actual, string $what): void
    {
        $expected === $actual || throw new \LogicException("{$what}: expected " . \var_export($expected, true) . ', found ' . \var_export($actual, true));
    }
}
