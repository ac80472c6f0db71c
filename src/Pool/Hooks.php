<?php

declare(strict_types=1);

namespace Weft\Pool;

/**
 * What else happens in the life of a resource; of a `Weft\Sql\Database` that is a connection, and the hook gets a
 * `Weft\Sql\Session`, on which it may run statements, except in `closed`. A hook may wait. It must not borrow from its own pool.
 *
 * What a hook throws ends the resource. From `created` it is a failure to make it, from `borrowed` it is thrown by the borrow.
 * From `returned` and `closed` a {@see Pool} throws it from the call it belongs to, a database warns: nobody waits for those.
 */
final class Hooks
{
    /**
     * @param ?\Closure(mixed): void $created after one was made; within `createTimeout`. What it sets in a session holds for
     *     every borrower: it is called again when the session had to be cleaned
     * @param ?\Closure(mixed): void $borrowed before it is lent, a connection for each statement or transaction; of a database
     *     within `borrowTimeout`. What it sets in a session is gone when the connection comes back
     * @param ?\Closure(mixed): void $returned when it comes back: a resource before its reset, a session after it was cleaned,
     *     within `returnTimeout`
     * @param ?\Closure(mixed): void $closed after it was closed, however it ended
     * @param ?\Closure(Leak): void $leaked once for each that is held longer than `leakThreshold`; by default a warning
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
     * @internal those of resources that there are
     *
     * @return list<string>
     */
    public function names(): array
    {
        $hooks = ['created' => $this->created, 'borrowed' => $this->borrowed, 'returned' => $this->returned, 'closed' => $this->closed];

        return \array_keys(\array_filter($hooks));
    }
}
