<?php

declare(strict_types=1);

namespace Weft\Lock;

use Weft\Internal\Jitter;
use Weft\Pool\PoolException;
use Weft\Runtime\Mutex;
use Weft\Runtime\Scope;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;

use function Weft\current;
use function Weft\delay;
use function Weft\scope;
use function Weft\shield;
use function Weft\timeout;

/**
 * Locks across processes: one owner at a time for each name, whichever process, until the lock is given back or the owner is
 * gone for longer than it lives.
 *
 * No lock that ends by itself can stop an owner that stands still in the very moment in which it is lost: what must never
 * happen twice has to compare {@see Lock::$fence}, or be part of a transaction with a version of its own.
 */
final class Locks
{
    /** Seconds between two looks at a lock that another process has: at first, and at most. */
    private const FIRST_PAUSE = 0.01;
    private const LONGEST_PAUSE = 0.25;

    /** @var array<string, array{Mutex, int}> with how many tasks of this process want it */
    private array $queues = [];

    /** @param float $seconds a lock lives without being renewed; what waits for a killed owner waits as long */
    public function __construct(
        private readonly LockStore $store,
        private readonly float $seconds = 30.0,
    ) {
        if (\is_nan($seconds) || $seconds < 0.05) {
            throw new \ValueError("A lock lives at least 0.05 seconds, got {$seconds}");
        }
    }

    /** Locks in a database, for all processes that use it. */
    public static function in(Database $database, float $seconds = 30.0): self
    {
        return new self(new SqlStore($database), $seconds);
    }

    /**
     * Runs a section with the lock, which is renewed in the background meanwhile and given back at its end. When it is lost
     * the section is cancelled at its suspension point. Not re-entrant.
     *
     * Tasks of this process get it in the order in which they ask.
     *
     * @template T
     *
     * @param string             $name    1 to 200 bytes
     * @param callable(Lock): T  $section
     * @param float|null         $wait    seconds after which to give up; null waits for ever, 0.0 does not wait
     *
     * @return T
     *
     * @throws LockConflictException              when somebody else had it all the time
     * @throws LockLostException               when it was lost meanwhile, also if the section has returned
     * @throws SqlException when the database cannot be asked
     */
    public function synchronized(string $name, callable $section, ?float $wait = null): mixed
    {
        self::check($name);
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

    private static function check(string $name): void
    {
        if ($name === '' || \strlen($name) > 200) {
            throw new \ValueError("The name of a lock has 1 to 200 bytes, \"{$name}\" has " . \strlen($name));
        }
    }

    private static function enter(Mutex $mutex, string $name, ?float $wait): void
    {
        try {
            $wait === null || !$mutex->isLocked() ? $mutex->lock() : timeout($wait, $mutex->lock(...));
        } catch (TimeoutException) {
            throw new LockConflictException("The lock \"{$name}\" was held or waited for by other tasks of this process for {$wait} s", $name);
        }
    }

    private function acquire(string $name, ?float $end): Lock
    {
        $owner = \bin2hex(\random_bytes(16));
        $pause = self::FIRST_PAUSE;
        $began = Lock::now();
        while (true) {
            $asked = Lock::now();
            $fence = $this->ask($name, $owner);
            if ($fence !== null) {
                return new Lock($this->store, $name, $owner, $fence, $this->seconds, $asked + $this->seconds);
            }
            $left = $end === null ? \INF : $end - Lock::now();
            if ($left <= 0.0) {
                throw new LockConflictException(\sprintf('The lock "%s" was held by another owner all the %.3f s it was waited for', $name, Lock::now() - $began), $name);
            }
            // At random, so that those who wait do not ask all at once.
            delay(\min($left, Jitter::around($pause, 0.5)));
            $pause = \min(self::LONGEST_PAUSE, 2 * $pause);
        }
    }

    /** @return ?positive-int the fence, null while another owner has the lock */
    private function ask(string $name, string $owner): ?int
    {
        try {
            return $this->store->acquire($name, $owner, $this->seconds);
        } catch (\Throwable $thrown) {
            // The answer was lost or not waited for: it may be ours, and nobody would give it back.
            try {
                shield(fn(): bool => $this->store->release($name, $owner));
            } catch (PoolException | SqlException) {
                // Then it ends by itself.
            }
            throw $thrown;
        }
    }

    /** @param callable(Lock): mixed $section */
    private static function guard(Lock $lock, callable $section): mixed
    {
        try {
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
