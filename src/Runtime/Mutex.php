<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitQueue;

/** A lock that one task holds at a time. Waiting tasks get it in the order in which they asked. Not re-entrant. */
final class Mutex implements \Stringable
{
    private bool $locked = false;
    /** Null also while the code outside `run()` holds it. */
    private ?Coroutine $owner = null;
    private readonly WaitQueue $waiters;

    public function __construct()
    {
        $this->waiters = new WaitQueue($this);
    }

    /**
     * Waits for the lock.
     *
     * @throws \Error the task already holds it and would wait for itself
     */
    public function lock(): void
    {
        $task = Scheduler::task();
        if ($this->locked) {
            if ($this->owner === $task) {
                throw new \Error('This mutex is held by the same ' . self::nameOf($task) . ' already: it would wait for itself');
            }
            $this->waiters->wait();
        }
        $this->locked = true;
        $this->owner = $task;
    }

    /** @throws \Error the current task does not hold it */
    public function unlock(): void
    {
        $task = Scheduler::task();
        if (!$this->locked || $this->owner !== $task && !$this->owner?->isUnwinding()) {
            $holder = $this->locked ? self::nameOf($this->owner) . ' holds it' : 'it is not locked';
            throw new \Error('This mutex cannot be unlocked by ' . self::nameOf($task) . ": $holder");
        }
        // The lock goes over as it is; the one that is woken puts its name on it.
        $next = $this->waiters->first();
        $this->locked = $this->waiters->wake();
        $this->owner = $next;
    }

    /**
     * Runs `$section` while holding the lock.
     *
     * @template T
     *
     * @param callable(): T $section
     *
     * @return T
     */
    public function synchronized(callable $section): mixed
    {
        $this->lock();
        try {
            return $section();
        } finally {
            $this->unlock();
        }
    }

    public function isLocked(): bool
    {
        return $this->locked;
    }

    /**
     * @internal
     *
     * Whether the current task holds it, which then must not ask for it.
     */
    public function isHeldByCurrentTask(): bool
    {
        return $this->locked && $this->owner === Scheduler::task();
    }

    /** Names the wait in reports. */
    public function __toString(): string
    {
        return 'a mutex held by ' . self::nameOf($this->owner);
    }

    private static function nameOf(?Coroutine $task): string
    {
        return $task === null ? 'the code outside run()' : "task {$task->label()}";
    }
}
