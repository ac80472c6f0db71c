<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\HandleInUseError;

/**
 * Handles of libraries that several tasks use. The extension calls it when a task uses a handle in which another task waits.
 *
 * @internal
 */
final class SharedHandles
{
    /** @var array<int, TurnQueue> the tasks that wait for their turn, by the address of what they share */
    private static array $queues = [];

    /**
     * @param ?\Fiber $holder the fiber that waits
     * @param string $call the call in which it waits
     * @param string $place `file:line` of that call
     * @param ?string $target what the handle is connected to, where only the extension knows
     *
     * @return array{message: string, handle: string, call: string, holder: ?\Weft\Runtime\TaskInfo} the arguments of {@see HandleInUseError}
     */
    public static function inUse(?\Fiber $holder, string $call, string $place, mixed $handle, ?string $target): array
    {
        $name = HandleName::of($handle, $target);
        $task = self::taskOn($holder);
        $who = $task === null ? 'another fiber' : "task {$task->label()}";

        return [
            'message' => "$name is in use: $who waits in $call at $place. A handle serves one task at a time: give each task its own, for example from a pool.",
            'handle' => $name,
            'call' => $call,
            'holder' => $task === null ? null : TaskReport::of($task),
        ];
    }

    /**
     * Waits until the calls that use these sides of the handle have ended, and those of tasks that asked before.
     *
     * @param int $sides 1 to read, 2 to write, 3 for both
     */
    public static function waitForTurn(int $address, int $sides, mixed $handle, ?string $target): void
    {
        $queue = self::$queues[$address] ??= new TurnQueue(HandleName::of($handle, $target) . ', which another task uses');
        try {
            $queue->wait($sides);
        } finally {
            if ($queue->isEmpty()) {
                unset(self::$queues[$address]);
            }
        }
    }

    /** Lets the tasks go on that have waited longest, one for each side that no call uses. */
    public static function giveTurn(int $address, int $sidesInUse): void
    {
        (self::$queues[$address] ?? null)?->give($sidesInUse);
    }

    private static function taskOn(?\Fiber $fiber): ?Coroutine
    {
        foreach ($fiber === null ? [] : Scheduler::$current?->tasks() ?? [] as $task) {
            if ($task->fiber === $fiber) {
                return $task;
            }
        }

        return null;
    }
}
