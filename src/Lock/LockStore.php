<?php

declare(strict_types=1);

namespace Weft\Lock;

/**
 * Stores locks. A lock has one owner at a time, identified by a token, until it is released or expires.
 *
 * `tests/Lock/LockStoreConformance.php` states the contract as tests.
 */
interface LockStore
{
    /**
     * Acquires a lock if it is free. Does not wait.
     *
     * @param string $name    1 to 200 bytes of UTF-8, without NUL
     * @param string $owner   a token of 1 to 64 bytes, unique to this attempt
     * @param float  $seconds lifetime, after which the lock is free
     *
     * @return positive-int|null a fencing token, greater than that of every earlier owner; null when the lock is held
     */
    public function acquire(string $name, string $owner, float $seconds): ?int;

    /**
     * Extends the lifetime to this many seconds from now.
     *
     * @return bool false when this owner no longer holds the lock
     */
    public function renew(string $name, string $owner, float $seconds): bool;

    /** @return bool false when this owner no longer held the lock */
    public function release(string $name, string $owner): bool;
}
