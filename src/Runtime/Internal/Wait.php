<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * A PHP object that a task can wait for.
 *
 * @internal
 */
interface Wait
{
    /** Completes the sentence "the task waits for …". */
    public function describe(): string;

    /** The task is about to be cancelled: do not wake it any more. */
    public function abandon(Coroutine $task): void;
}
