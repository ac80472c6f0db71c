<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\DeadlockException;
use Weft\Runtime\TaskInfo;
use Weft\Runtime\TaskState;

/**
 * Describes tasks for task lists and deadlock reports.
 *
 * @internal
 */
final class TaskReport
{
    public static function of(Coroutine $task): TaskInfo
    {
        $state = $task->state();
        if ($state === TaskState::Ready && $task->fiber?->isSuspended() === true && !\in_array($task, [...$task->scheduler->woken, ...$task->scheduler->yielded, ...$task->scheduler->turn, $task->scheduler->next], true)) {
            $state = TaskState::Waiting;
        }
        [$subject, $place] = $state === TaskState::Waiting ? CallSites::waitOf($task) : [null, null];
        $waitsFor = match (true) {
            $state !== TaskState::Waiting => null,
            $task->wait instanceof Wait => $task->wait->describe(),
            $task->wait === null => 'a Fiber::suspend() of its own',
            default => $subject,
        };
        $parent = $task->group instanceof Children ? $task->group->owner->id : null;
        $age = \hrtime(true) / 1e9 - $task->since;

        return new TaskInfo($task->id, $task->name(), $parent, $state, $age, $waitsFor, $place, $task->origin());
    }

    /** @param list<Coroutine> $tasks all there are */
    public static function deadlock(array $tasks, int $maxFibers): DeadlockException
    {
        $infos = \array_map(self::of(...), $tasks);
        $waiting = \array_filter($infos, static fn(TaskInfo $info) => $info->state === TaskState::Waiting);
        $message = 'Deadlock: no event can wake ' . self::count(\count($waiting), 'waiting task') . '.';
        $queued = \count($infos) - \count($waiting);
        if ($queued > 0) {
            $message .= ' ' . self::count($queued, 'task') . " could not start because all $maxFibers fibers are in use.";
        }
        $lines = \array_map(static fn(TaskInfo $info) => "\n  $info", \array_slice($waiting, 0, 100));
        $more = \count($waiting) > 100 ? "\n  and " . (\count($waiting) - 100) . ' more' : '';

        return new DeadlockException($message . \implode('', $lines) . $more, \array_values($waiting));
    }

    private static function count(int $count, string $noun): string
    {
        return "$count $noun" . ($count === 1 ? '' : 's');
    }
}
