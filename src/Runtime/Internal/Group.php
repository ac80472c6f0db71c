<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * What a task belongs to and reports its end to.
 *
 * @internal
 */
interface Group
{
    public function ended(Coroutine $child): void;

    /** @return array<int, Coroutine> by id */
    public function members(): array;
}
