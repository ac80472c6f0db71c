<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\PublishException;
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

    /** Seconds until preparations that have failed are repeated. */
    private const PREPARE_INTERVAL = 1.0;

    /** Seconds after which a lock that others hold has an owner that lives, and renews it. */
    public const ALIVE_AFTER = self::LOCK_SECONDS + 1.0;

    private readonly SqlStore $store;
    private readonly string $name;
    private readonly string $owner;
    private bool $stopping = false;
    private ?Lock $lock = null;
    private bool $wasLost = false;
    private float $until = \INF;

    /** Whether it has reported whom it waits for. */
    private bool $standsBy = false;

    public function __construct(
        Database $database,
        private readonly string $queue,
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
     * @param \Closure(): void $prepare    called with the lock held when the previous consumer is gone, and again when it throws
     * @param float            $until      when it gives up, by the monotonic clock
     * @return bool false when it was told to stop, or the time was over, before
     */
    public function await(bool $signals, \Closure $isConsumed, \Closure $prepare, float $until = \INF): bool
    {
        $this->until = $until;
        $isReady = false;
        $watch = $signals ? detach(function (): void {
            signal(self::SIGTERM, self::SIGINT);
            $this->stop();
        }) : null;
        try {
            do {
                $this->acquire();
                $isReady = $this->lock !== null && $this->takeOver($isConsumed, $prepare);
            } while (!$isReady && !$this->isOver());
        } catch (\Throwable $thrown) {
            $this->release();
            throw $thrown;
        } finally {
            $watch?->cancel();
        }
        if (!$isReady || $this->stopping) {
            $this->release();
            $this->lock = null;
        } elseif ($this->standsBy) {
            $this->logger->notice('Queue {queue} is consumed by this process now', ['queue' => $this->queue]);
        }

        return $this->lock !== null;
    }

    private function acquire(): void
    {
        while (!$this->isOver() && $this->lock === null) {
            $this->lock = $this->take();
            if ($this->lock === null) {
                $this->reportOwner();
                $this->pause(self::RETRY_INTERVAL);
            }
        }
    }

    /**
     * @param \Closure(): bool $isConsumed
     * @param \Closure(): void $prepare
     * @return bool false when the lock was lost meanwhile, or it is over
     */
    private function takeOver(\Closure $isConsumed, \Closure $prepare): bool
    {
        $held = $this->hold(static function (): void {});
        try {
            $isReady = $this->awaitPrevious($isConsumed) && $this->prepare($prepare);
        } finally {
            $held->cancel('the previous consumer is gone');
        }
        if ($this->wasLost) {
            $this->lock = null;
            $this->wasLost = false;

            return false;
        }

        return $isReady;
    }

    /** @param \Closure(): bool $isConsumed */
    private function awaitPrevious(\Closure $isConsumed): bool
    {
        for ($checks = 1; $isConsumed(); $checks++) {
            if ($this->isOver() || $this->wasLost) {
                return false;
            }
            // A broker may count a consumer that has just been closed.
            $checks === 2 && $this->logger->warning('Queue {queue} still has a consumer that does not hold the lock "{lock}": a process that has ended and whose messages the broker has not'
                . ' requeued yet, or one without the ordered messages among its handlers. This process waits until that consumer is gone', ['queue' => $this->queue, 'lock' => $this->name]);
            $this->pause(self::RETRY_INTERVAL);
        }

        return true;
    }

    /** @param \Closure(): void $prepare */
    private function prepare(\Closure $prepare): bool
    {
        while (!$this->isOver() && !$this->wasLost) {
            try {
                $prepare();

                return true;
            } catch (PublishException | PoolException | SqlException $exception) {
                $this->logger->warning('Queue {queue} is not consumed before the ordered messages in the outbox are published: {error}', ['queue' => $this->queue, 'error' => $exception->getMessage(), 'exception' => $exception]);
            }
            $this->pause(self::PREPARE_INTERVAL);
        }

        return false;
    }

    /** Once, as long as it waits. */
    private function reportOwner(): void
    {
        if ($this->standsBy) {
            return;
        }
        try {
            $owner = \explode(' ', (string) $this->store->owner($this->name));
        } catch (PoolException | SqlException) {
            // take() has reported it.
            return;
        }
        $this->standsBy = true;
        $this->logger->notice('Queue {queue} has ordered messages and is consumed by {owner}; this process stands by', [
            'queue' => $this->queue,
            'owner' => \count($owner) === 3 ? "process {$owner[1]} on {$owner[0]}" : 'another process',
        ]);
    }

    private function isOver(): bool
    {
        return $this->stopping || Clock::monotonic() >= $this->until;
    }

    private function pause(float $seconds): void
    {
        delay(\max(0.0, \min($seconds, $this->until - Clock::monotonic())));
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
