<?php

declare(strict_types=1);

namespace Weft\Lock;

use Weft\Pool\PoolException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\SqlException;

use function Weft\delay;
use function Weft\shield;
use function Weft\timeout;

/** A lock that this process holds for as long as it is renewed. Created by {@see Locks}. */
final class Lock
{
    /** Renewals per lifetime. */
    private const RENEWALS = 3;

    /** Seconds between two attempts to renew while the store fails. */
    private const RETRY_INTERVAL = 0.05;

    private bool $isOver = false;

    /**
     * @internal
     *
     * @param positive-int $fence the fencing token, greater than that of every earlier owner: the guarded resource can refuse smaller ones
     * @param float        $end   when the lock expires at the earliest, by the monotonic clock
     */
    public function __construct(
        private readonly LockStore $store,
        public readonly string $name,
        private readonly string $owner,
        public readonly int $fence,
        public readonly float $seconds,
        private float $end,
    ) {}

    /**
     * Whether this process certainly still holds the lock. The lifetime counts from before the last request to the store, so the
     * answer becomes false too early rather than too late.
     */
    public function isHeld(): bool
    {
        return !$this->isOver && self::now() < $this->end;
    }

    /** @throws LockLostException when {@see isHeld()} is false */
    public function ensureHeld(): void
    {
        if (!$this->isHeld()) {
            throw $this->lost('it expired before it was renewed');
        }
    }

    /**
     * Extends the lock to its full lifetime from now. {@see Locks} does this in the background.
     *
     * @throws LockLostException     when this process no longer holds the lock
     * @throws SqlException when the store fails; renewal may be retried until the lock expires
     */
    public function renew(): void
    {
        $this->ensureHeld();
        $asked = self::now();
        if (!$this->store->renew($this->name, $this->owner, $this->seconds)) {
            throw $this->lost('it was not renewed in time');
        }
        $this->end = $asked + $this->seconds;
    }

    /**
     * Releases the lock. Does nothing when it was released before.
     *
     * @throws LockLostException when it had expired: another owner may have held it meanwhile
     */
    public function release(): void
    {
        if ($this->isOver) {
            return;
        }
        $wasHeld = $this->isHeld();
        $this->isOver = true;
        $released = shield(fn(): bool => $this->store->release($this->name, $this->owner));
        if (!$wasHeld || !$released) {
            throw $this->lost('it expired before it was released');
        }
    }

    /**
     * Renews the lock until it is released.
     *
     * @internal
     *
     * @throws LockLostException
     */
    public function keep(): void
    {
        while (!$this->isOver) {
            delay(\max(0.0, \min($this->seconds / self::RENEWALS, $this->end - self::now())));
            $this->isOver || $this->renewInTime();
        }
    }

    private function renewInTime(): void
    {
        $cause = null;
        while ($this->isHeld()) {
            try {
                timeout(\max(0.0, $this->end - self::now()), $this->renew(...));

                return;
            } catch (PoolException | SqlException | TimeoutException $cause) {
                delay(self::RETRY_INTERVAL);
            }
        }
        $this->isOver || throw $this->lost('it could not be renewed in time', $cause);
    }

    private function lost(string $why, ?\Throwable $cause = null): LockLostException
    {
        $this->isOver = true;
        $late = self::now() - $this->end;

        return new LockLostException("The lock \"{$this->name}\" (fencing token {$this->fence}) is lost: {$why}. Its lifetime of {$this->seconds} s"
            . ($late > 0 ? \sprintf(' ended %.3f s ago', $late) : ' has not ended'), $this->name, $cause);
    }

    /** @internal */
    public static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
