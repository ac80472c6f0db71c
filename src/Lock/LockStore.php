<?php

declare(strict_types=1);

namespace Weft\Lock;

/**
 * Where locks are kept. A lock has one owner at a time, named by a token, until it is given back or its time is over.
 *
 * `tests/Lock/LockStoreConformance.php` states the contract as tests.
 */
interface LockStore
{
    /**
     * Takes a lock if nobody has it. Does not wait.
     *
     * @param string $name    1 to 200 bytes
     * @param string $owner   the token of who asks, 1 to 64 bytes, of nobody else and no other time
     * @param float  $seconds after which it is free by itself
     *
     * @return positive-int|null a number greater than that of every owner before; null when somebody has it
     */
    public function acquire(string $name, string $owner, float $seconds): ?int;

    /**
     * Lets it live so many seconds from now.
     *
     * @return bool false when it is no longer this owner's
     */
    public function renew(string $name, string $owner, float $seconds): bool;

    /** @return bool false when it was no longer this owner's */
    public function release(string $name, string $owner): bool;
}
