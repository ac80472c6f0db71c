<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * How many connections a {@see Database} may hold and how long a task waits for one.
 *
 * SQLite ignores the size: its writer is one thread that groups commits, and its readers are set in the DSN.
 */
final class PoolOptions
{
    /**
     * @param positive-int $size most connections at once; opened only as needed
     * @param float $borrowTimeout seconds a task waits for a free connection before {@see PoolExhausted}; with 0 only for
     *     one that can be opened
     * @param string $name what messages call the pool; empty: the database's name
     */
    public function __construct(
        public readonly int $size = 20,
        public readonly float $borrowTimeout = 30.0,
        public readonly string $name = '',
    ) {
        if ($size < 1) {
            throw new \ValueError("Pool size must be at least 1, got {$size}");
        }
        if (!($borrowTimeout >= 0.0)) {
            throw new \ValueError("Borrow timeout must not be negative, got {$borrowTimeout} seconds");
        }
    }
}
