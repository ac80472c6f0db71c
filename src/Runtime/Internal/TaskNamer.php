<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * A group whose tasks get their names only when somebody asks: naming each would cost more than starting it.
 *
 * @internal
 */
interface TaskNamer
{
    public function nameOf(Coroutine $task): string;
}
