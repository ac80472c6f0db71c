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
        $result = $error = null;
        try {
            $result = $work($first, $second, $third);
        } catch (\Throwable $thrown) {
            $error = $thrown;
        }
        /** @var Children|null $children `$work` may have opened it */
        $children = $task->children;
        if ($children !== null) {
            $error = $children->close($error);
        }
        if ($error !== null) {
            throw $error;
        }

        return $result;
    }
}
