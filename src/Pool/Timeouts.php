<?php

declare(strict_types=1);

namespace Weft\Pool;

/** How long the operations of a pool may take, in seconds; see {@see PoolOptions}. */
final class Timeouts
{
    /**
     * @param float $borrow seconds until a borrow fails with `PoolExhaustedException`, at least 0; 0 waits only while a resource is created for it. Lower it
     *     where callers have deadlines of their own
     * @param float $create seconds until a creation fails; 0: unlimited. Lower it where the server or a factory may hang
     * @param float $return seconds until a returned connection that needs cleaning is closed; 0: every such connection is closed. Raise it
     *     where cleaning is slow
     *
     * @throws \ValueError for a time that is negative, NaN or infinite
     */
    public function __construct(
        public readonly float $borrow = 30.0,
        public readonly float $create = 30.0,
        public readonly float $return = 5.0,
    ) {
        Internal\Seconds::check('timeouts', ['borrow' => $borrow, 'create' => $create, 'return' => $return]);
    }
}
