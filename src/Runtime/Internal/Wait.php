<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Something of the PHP side that a task can wait for.
 *
 * @internal
 */
interface Wait
{
    /** Completes the sentence "the task waits for …". */
    public function describe(): string;

    /** The task is about to be cancelled: it must not be woken by this any more. */
    public function abandon(Coroutine $task): void;
}
