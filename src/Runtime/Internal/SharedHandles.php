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
    /** @var array<int, WaitQueue> the tasks that wait for their turn, by the address of what they share */
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
        $who = $task === null ? 'another fiber' : "task $task";

        return [
            'message' => "$name is in use: $who waits in $call at $place. A handle serves one task at a time: give each task its own, for example from a pool.",
            'handle' => $name,
            'call' => $call,
            'holder' => $task === null ? null : TaskReport::of($task),
        ];
    }

    /** Waits until a call that uses the handle has ended. */
    public static function waitForTurn(int $address, mixed $handle, ?string $target): void
    {
        $queue = self::$queues[$address] ??= new WaitQueue(HandleName::of($handle, $target) . ', which another task uses');
        try {
            $queue->wait();
        } finally {
            if ($queue->isEmpty()) {
                unset(self::$queues[$address]);
            }
        }
    }

    /** Lets the task that has waited longest go on. */
    public static function giveTurn(int $address): void
    {
        (self::$queues[$address] ?? null)?->wake();
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
