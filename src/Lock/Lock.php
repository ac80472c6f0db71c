<?php

declare(strict_types=1);

namespace Weft\Lock;

use Weft\Pool\PoolException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\SqlException;

use function Weft\delay;
use function Weft\shield;
use function Weft\timeout;

/** A lock that this process has, for as long as it is renewed. Made by {@see Locks}. */
final class Lock
{
    /** Renewals within one lifetime. */
    private const RENEWALS = 3;

    /** Seconds between two tries where the store does not answer. */
    private const PAUSE = 0.05;

    private bool $isOver = false;

    /**
     * @internal
     *
     * @param positive-int $fence greater than that of every owner before: what the lock guards can refuse smaller ones
     * @param float        $end   until when it is certainly ours, by the monotonic clock
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
     * Whether it is certainly ours still. Measured from before the store was asked last, so it says no rather too early.
     */
    public function isHeld(): bool
    {
        return !$this->isOver && self::now() < $this->end;
    }

    /** @throws LockLostException when it is not certainly ours any more */
    public function ensureHeld(): void
    {
        if (!$this->isHeld()) {
            throw $this->lost('its time was over before it was renewed');
        }
    }

    /**
     * Lets it live its full time from now. {@see Locks} does that in the background.
     *
     * @throws LockLostException     when it is not ours any more
     * @throws SqlException when the store cannot be asked; it may be tried again until the lock's end
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
     * Gives it back. Nothing happens when that was done before.
     *
     * @throws LockLostException when it had ended before: somebody else may have had it meanwhile
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
            throw $this->lost('its time was over before it was given back');
        }
    }

    /**
     * Renews it until it is given back.
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
                delay(self::PAUSE);
            }
        }
        $this->isOver || throw $this->lost('it could not be renewed in time', $cause);
    }

    private function lost(string $why, ?\Throwable $cause = null): LockLostException
    {
        $this->isOver = true;
        $late = self::now() - $this->end;

        return new LockLostException("The lock \"{$this->name}\" (number {$this->fence}) is lost: {$why}; it lived {$this->seconds} s"
            . ($late > 0 ? \sprintf(' and ended %.3f s ago', $late) : ''), $this->name, $cause);
    }

    /** @internal */
    public static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
