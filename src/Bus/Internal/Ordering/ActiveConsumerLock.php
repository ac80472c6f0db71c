<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Psr\Log\LoggerInterface;
use Weft\Lock\Lock;
use Weft\Lock\LockLostException;
use Weft\Lock\SqlStore;
use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\SqlException;

use function Weft\delay;
use function Weft\detach;
use function Weft\shield;
use function Weft\signal;

/**
 * The lock that lets one process at a time consume a queue of ordered messages.
 *
 * @internal
 */
final class ActiveConsumerLock
{
    private const SIGINT = 2;
    private const SIGTERM = 15;

    /** Seconds until others may take over from a process that has ended. */
    private const LOCK_SECONDS = 5.0;

    /** Seconds between two attempts. */
    private const RETRY_INTERVAL = 0.25;

    private readonly SqlStore $store;
    private readonly string $name;
    private readonly string $owner;
    private bool $stopping = false;
    private ?Lock $lock = null;
    private bool $wasLost = false;

    public function __construct(
        Database $database,
        string $queue,
        private readonly LoggerInterface $logger,
    ) {
        $this->store = new SqlStore($database);
        // Names of locks have at most 200 bytes, names of queues 250.
        $this->name = 'queue ' . (\strlen($queue) <= 190 ? $queue : \hash('sha256', $queue));
        // For people: names the machine and the process.
        $this->owner = \substr((string) \gethostname(), 0, 30) . ' ' . (string) \getmypid() . ' ' . \bin2hex(\random_bytes(8));
    }

    /**
     * Acquires the lock and waits until the previous owner's consumer is gone. The lock alone is not enough: an owner that was killed
     * or has stalled may still hold unacknowledged messages, and the broker would deliver the ones behind them first.
     *
     * @param \Closure(): bool $isConsumed whether the queue still has a consumer
     * @return bool false when it was told to stop before
     */
    public function await(bool $signals, \Closure $isConsumed): bool
    {
        $watch = $signals ? detach(function (): void {
            signal(self::SIGTERM, self::SIGINT);
            $this->stop();
        }) : null;
        try {
            do {
                $this->acquire();
            } while ($this->lock !== null && !$this->awaitPrevious($isConsumed));
        } catch (\Throwable $thrown) {
            $this->release();
            throw $thrown;
        } finally {
            $watch?->cancel();
        }
        if ($this->lock !== null && $this->stopping) {
            $this->release();
            $this->lock = null;
        }

        return $this->lock !== null;
    }

    private function acquire(): void
    {
        while (!$this->stopping && $this->lock === null) {
            $this->lock = $this->take();
            $this->lock === null && delay(self::RETRY_INTERVAL);
        }
    }

    /**
     * @param \Closure(): bool $isConsumed
     * @return bool false when the lock was lost meanwhile
     */
    private function awaitPrevious(\Closure $isConsumed): bool
    {
        $held = $this->hold(static function (): void {});
        try {
            while (!$this->stopping && !$this->wasLost && $isConsumed()) {
                delay(self::RETRY_INTERVAL);
            }
        } finally {
            $held->cancel('the previous consumer is gone');
        }
        if ($this->wasLost) {
            $this->lock = null;
            $this->wasLost = false;

            return false;
        }

        return true;
    }

    public function stop(): void
    {
        $this->stopping = true;
    }

    /**
     * Renews the lock until it is cancelled.
     *
     * @param \Closure(): void $lost called when another process may have acquired it
     */
    public function hold(\Closure $lost): Task
    {
        return detach(function () use ($lost): void {
            try {
                $this->lock?->keep();
            } catch (LockLostException $exception) {
                $this->logger->error('The lock of the ordered queue was lost, consuming stops: {error}', ['error' => $exception->getMessage(), 'exception' => $exception]);
                $this->wasLost = true;
                $lost();
            }
        });
    }

    /** Whether another process may have acquired it. */
    public function wasLost(): bool
    {
        return $this->wasLost;
    }

    public function release(): void
    {
        try {
            $this->lock?->release();
        } catch (LockLostException | PoolException | SqlException) {
            // Others then wait until it expires.
        }
    }

    private function take(): ?Lock
    {
        $asked = Lock::now();
        try {
            // As in Locks: a cancelled statement may still be committed.
            $fence = shield(fn(): ?int => $this->store->acquire($this->name, $this->owner, self::LOCK_SECONDS));
        } catch (PoolException | SqlException $exception) {
            $this->logger->warning('The lock of the ordered queue could not be acquired: {error}', ['error' => $exception->getMessage(), 'exception' => $exception]);

            return null;
        }

        return $fence === null ? null : new Lock($this->store, $this->name, $this->owner, $fence, self::LOCK_SECONDS, $asked + self::LOCK_SECONDS);
    }
}
