<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\Scope;

/**
 * The scope of a call into the application, such as a handler of a message: the call ends when the tasks that it has started have ended, and
 * fails with the first of them that fails.
 *
 * Where the task has no scope open, the one that `async()` opens at the first call serves, so a call that starts no task costs next to nothing.
 *
 * @internal
 */
final class CallScope
{
    /** Up to three arguments, because to collect and to spread any number of them costs more than the rest. */
    public static function call(\Closure $work, mixed $first = null, mixed $second = null, mixed $third = null): mixed
    {
        $task = Scheduler::$current?->running;
        if ($task === null) {
            return $work($first, $second, $third);
        }
        if ($task->children !== null) {
            return Scope::open($task, static fn(): mixed => $work($first, $second, $third));
        }
        try {
            $result = $work($first, $second, $third);
        } catch (\Throwable $thrown) {
            self::end($task, $thrown);

            return null;
        }
        // `$work` may have opened it.
        $task->children === null || self::end($task, null);

        return $result;
    }

    /** @throws \Throwable what the call fails with */
    private static function end(Coroutine $task, ?\Throwable $thrown): void
    {
        /** @var Children|null $children */
        $children = $task->children;
        $error = $children === null ? $thrown : $children->close($thrown);
        if ($error !== null) {
            throw $error;
        }
    }
}
