<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

/**
 * What takes back in memory what a transaction has not kept: called when it, or the savepoint around the call that added it, is rolled
 * back, and when it is dropped without a commit.
 *
 * @internal
 */
final class Rollbacks
{
    /** @var list<array{int, \Closure(): void}> with the number of savepoints around each */
    private array $added = [];

    /** @param \Closure(): void $undo must not throw, wait, or hold the transaction */
    public function add(int $depth, \Closure $undo): void
    {
        $this->added[] = [$depth, $undo];
    }

    /** The nested transaction at this depth has become a part of the one around it. */
    public function released(int $depth): void
    {
        // Those of a savepoint are at the end.
        for ($index = \count($this->added) - 1; $index >= 0 && $this->added[$index][0] >= $depth; $index--) {
            $this->added[$index][0] = $depth - 1;
        }
    }

    /** The nested transaction at this depth was rolled back; 0 for the whole. */
    public function undone(int $depth): void
    {
        // The last first.
        while ($this->added !== [] && $this->added[\count($this->added) - 1][0] >= $depth) {
            \array_pop($this->added)[1]();
        }
    }

    public function committed(): void
    {
        $this->added = [];
    }

    public function __destruct()
    {
        $this->undone(0);
    }
}
