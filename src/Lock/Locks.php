<?php

declare(strict_types=1);

namespace Weft\Lock;

use Weft\Internal\Jitter;
use Weft\Internal\Number;
use Weft\Pool\PoolException;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Mutex;
use Weft\Runtime\Scope;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\UsageError;

use function Weft\current;
use function Weft\delay;
use function Weft\scope;
use function Weft\shield;
use function Weft\timeout;

/**
 * Locks across processes: each name has one owner at a time, until the owner releases the lock or fails to renew it for its
 * lifetime.
 *
 * A lock that expires cannot stop an owner that is blocked at the moment of expiry. An effect that must never happen twice has
 * to compare {@see Lock::$fence}, or belong to a transaction that checks a version.
 */
final class Locks
{
    /** Seconds between two attempts to acquire a lock that another process holds: at first, and at most. */
    private const FIRST_RETRY_INTERVAL = 0.01;
    private const LONGEST_RETRY_INTERVAL = 0.25;

    /** @var array<string, array{Mutex, int}> by name: orders the tasks of this process, and how many there are */
    private array $queues = [];

    /** @param float $seconds seconds that a lock lives without renewal, at least 0.05 and at most 31,536,000; after a crash of its owner, others wait this long */
    public function __construct(
        private readonly LockStore $store,
        private readonly float $seconds = 30.0,
    ) {
        if (\is_nan($seconds) || $seconds < 0.05 || $seconds > 31_536_000.0) {
            throw new \ValueError('The lifetime of a lock is at least 0.05 and at most 31,536,000 seconds, got ' . Number::text($seconds));
        }
    }

    /** Locks in a database, for all processes that use it. */
    public static function database(Database $database, float $seconds = 30.0): self
    {
        return new self(new SqlStore($database), $seconds);
    }

    /**
     * Acquires the lock, runs the section and releases the lock. Meanwhile the lock is renewed in the background. When it is lost,
     * the section is cancelled where it suspends. Locks are not re-entrant.
     *
     * Tasks of this process acquire it in the order in which they call.
     *
     * @template T
     *
     * @param string             $name    1 to 200 bytes of UTF-8, without NUL
     * @param callable(Lock): T  $section
     * @param float|null         $wait    seconds to wait for the lock; null: without limit, 0.0: not at all
     *
     * @return T
     *
     * @throws LockConflictException when another owner held it for the whole waiting time
     * @throws LockLostException     when it was lost meanwhile, even if the section has returned
     * @throws SqlException when the database fails
     * @throws UsageError when the current task holds it already
     */
    public function synchronized(string $name, callable $section, ?float $wait = null): mixed
    {
        self::check($name, $wait);
        if (current() === null) {
            return \Weft\run(fn(): mixed => $this->synchronized($name, $section, $wait));
        }
        [$mutex] = $this->queues[$name] ??= [new Mutex(), 0];
        $this->queues[$name][1]++;
        try {
            $end = $wait === null ? null : Lock::now() + $wait;
            self::enter($mutex, $name, $wait);
            try {
                return self::guard($this->acquire($name, $end), $section);
            } finally {
                $mutex->unlock();
            }
        } finally {
            if (--$this->queues[$name][1] === 0) {
                unset($this->queues[$name]);
            }
        }
    }

    private static function check(string $name, ?float $wait): void
    {
        if ($name === '' || \strlen($name) > 200 || \preg_match('/^[^\x00]*$/Du', $name) !== 1) {
            throw new \ValueError('The name of a lock must have 1 to 200 bytes of UTF-8 without NUL, got "' . \mb_scrub($name, 'UTF-8') . '" of ' . \strlen($name));
        }
        // The JIT of PHP 8.2 evaluates a comparison with NAN as true.
        if ($wait !== null && (\is_nan($wait) || $wait < 0.0)) {
            throw new \ValueError("The lock \"{$name}\" cannot be waited for: wait must be at least 0 seconds or null, got " . Number::text($wait));
        }
    }

    private static function enter(Mutex $mutex, string $name, ?float $wait): void
    {
        if ($mutex->isHeldByCurrentTask()) {
            throw new UsageError("The lock \"{$name}\" is held by this task already; locks are not re-entrant");
        }
        try {
            $wait === null || !$mutex->isLocked() ? $mutex->lock() : timeout($wait, $mutex->lock(...));
        } catch (TimeoutException) {
            throw new LockConflictException("The lock \"{$name}\" was not acquired within {$wait} s: other tasks of this process hold it or wait for it", $name);
        }
    }

    private function acquire(string $name, ?float $end): Lock
    {
        $owner = \bin2hex(\random_bytes(16));
        $pause = self::FIRST_RETRY_INTERVAL;
        $began = Lock::now();
        if ($this->store instanceof SqlStore) {
            // Before the lifetime begins: the first process creates the table, for which it may wait for others.
            shield($this->store->prepare(...));
        }
        while (true) {
            $asked = Lock::now();
            $fence = $this->ask($name, $owner);
            if ($fence !== null) {
                return new Lock($this->store, $name, $owner, $fence, $this->seconds, $asked + $this->seconds);
            }
            $left = $end === null ? \INF : $end - Lock::now();
            if ($left <= 0.0) {
                throw new LockConflictException(\sprintf('The lock "%s" was not acquired within %.3f s: another owner holds it', $name, Lock::now() - $began), $name);
            }
            // Jitter spreads the attempts of several waiters.
            delay(\min($left, Jitter::around($pause, 0.5)));
            $pause = \min(self::LONGEST_RETRY_INTERVAL, 2 * $pause);
        }
    }

    /** @return ?positive-int the fence, null while another owner has the lock */
    private function ask(string $name, string $owner): ?int
    {
        try {
            // The statement of a cancelled task may still be committed after a release on another connection: the task waits for its answer.
            return shield(fn(): ?int => $this->store->acquire($name, $owner, $this->seconds));
        } catch (\Throwable $thrown) {
            // Without the store's answer the lock may be acquired, and would not be released.
            try {
                shield(fn(): bool => $this->store->release($name, $owner));
            } catch (PoolException | SqlException) {
                // Then it expires.
            } catch (UsageError) {
                // SQLite refuses both statements while a transaction of this task is open: nothing was acquired.
            }
            throw $thrown;
        }
    }

    /** @param callable(Lock): mixed $section */
    private static function guard(Lock $lock, callable $section): mixed
    {
        try {
            // Throws if the task was cancelled while it acquired the lock.
            Scheduler::waiter();

            return scope(static function (Scope $scope) use ($lock, $section): mixed {
                $keeper = $scope->async($lock->keep(...))->named("renewal of the lock \"{$lock->name}\"");
                try {
                    return $section($lock);
                } finally {
                    $keeper->cancel();
                }
            });
        } finally {
            $lock->release();
        }
    }
}
