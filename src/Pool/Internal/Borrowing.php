<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Native;

/**
 * Closes the resource of a {@see \Weft\Pool\Pool::with()} that `exit()` has ended: PHP skips its `finally` block then, and runs destructors.
 *
 * The requests that are finished before the process ends may wait for the resource. A pool uses its borrowings again.
 *
 * @internal
 */
final class Borrowing
{
    /** The borrowed resource, 0 if none is. */
    public int $id = 0;

    public function __construct(private readonly Native\Pool $native)
    {
    }

    public function __destruct()
    {
        if ($this->id !== 0) {
            $this->native->giveBack($this->id, true);
        }
    }
}
