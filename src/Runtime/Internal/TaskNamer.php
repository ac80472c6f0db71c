<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * A group that names its tasks on demand: naming every task would cost more than starting it.
 *
 * @internal
 */
interface TaskNamer
{
    public function nameOf(Coroutine $task): string;
}
