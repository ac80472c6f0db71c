<?php

declare(strict_types=1);

namespace Weft\Pool;

/**
 * Callbacks in the life cycle of a resource. The resource of a `Weft\Sql\Database` is a connection: its hooks get a
 * `Weft\Sql\Session`, on which they may run statements, except in `closed`. A hook may suspend. It must not borrow from its own
 * pool.
 *
 * A resource whose hook throws is closed. An exception of `created` is a failed creation, one of `borrowed` is thrown by the
 * borrow. A {@see Pool} throws exceptions of `returned` from the call that triggered them. Others are reported as warnings, because no task waits
 * for these hooks.
 */
final class Hooks
{
    /**
     * @param ?\Closure(mixed): void $created after creation, within `Timeouts::$create`. Its session settings hold for every
     *     borrower: it is called again after the session was cleaned
     * @param ?\Closure(mixed): void $borrowed before a resource is lent, within `Timeouts::$borrow`; for a database, before each
     *     statement or transaction. Its session settings end when the connection is returned
     * @param ?\Closure(mixed): void $returned when a resource is returned: before its reset; a session after it was cleaned, within
     *     `Timeouts::$return`
     * @param ?\Closure(mixed): void $closed after a resource was closed, for any reason
     * @param ?\Closure(Holder): void $leaked once for each lease that lasts longer than `Leases::$leakThreshold`; without it a warning is triggered
     */
    public function __construct(
        public readonly ?\Closure $created = null,
        public readonly ?\Closure $borrowed = null,
        public readonly ?\Closure $returned = null,
        public readonly ?\Closure $closed = null,
        public readonly ?\Closure $leaked = null,
    ) {
    }

    /**
     * @internal the names of the resource hooks that are set
     *
     * @return list<string>
     */
    public function names(): array
    {
        $hooks = ['created' => $this->created, 'borrowed' => $this->borrowed, 'returned' => $this->returned, 'closed' => $this->closed];

        return \array_keys(\array_filter($hooks));
    }
}
