<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * The owner of tasks, which is notified when they end.
 *
 * @internal
 */
interface Group
{
    public function ended(Coroutine $child): void;

    /** @return array<int, Coroutine> by id */
    public function members(): array;
}
