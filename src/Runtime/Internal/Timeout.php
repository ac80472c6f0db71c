<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Scope;
use Weft\Runtime\TimeoutException;

/**
 * A scope that fails when its timeout expires.
 *
 * @internal
 */
final class Timeout
{
    public static function run(Coroutine $task, float $seconds, callable $work): mixed
    {
        $scheduler = $task->scheduler;
        $timer = Native\sleep($seconds);
        $expired = $undecided = null;
        $body = static function (Scope $scope) use ($scheduler, $timer, $task, $seconds, $work, &$expired, &$undecided): mixed {
            $scheduler->watch($timer, static function (int $timer) use ($scope, $task, $seconds, &$expired): void {
                Native\take($timer);
                $expired = new TimeoutException(self::message($task, $seconds), $seconds, $task->label());
                $scope->expire($expired);
            });

            try {
                return $work();
            } catch (CancelledException $cancelled) {
                $undecided = $cancelled->getPrevious();
                throw $cancelled;
            }
        };
        try {
            return Scope::open($task, $body);
        } catch (TimeoutException $thrown) {
            if ($thrown !== $expired) {
                throw $thrown;
            }
            // The first exception was created on the loop; a new one has the stack trace of the task.
            $traced = self::traced($thrown, $undecided === $thrown ? null : $undecided);
            SuppressedFailures::attach($traced, SuppressedFailures::of($thrown));
            throw $traced;
        } finally {
            $scheduler->unwatch($timer);
        }
    }

    private static function traced(TimeoutException $expired, ?\Throwable $undecided): TimeoutException
    {
        $message = $expired->getMessage() . ($undecided === null ? '' : '; ' . $undecided->getMessage());

        return new TimeoutException($message, $expired->seconds, $expired->task, $undecided);
    }

    private static function message(Coroutine $task, float $seconds): string
    {
        $doing = $task->state()->value;
        if ($task->wait !== null) {
            $info = TaskReport::of($task);
            $doing = "waiting for $info->waitsFor at $info->place";
        }

        return "Task {$task->label()} did not finish within $seconds seconds; when they were over it was $doing";
    }
}
