<?php

declare(strict_types=1);

namespace Weft;

use Weft\Runtime\CompositeException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Children;
use Weft\Runtime\Internal\Race;
use Weft\Runtime\Internal\TaskReport;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Signals;
use Weft\Runtime\Internal\SuppressedFailures;
use Weft\Runtime\Internal\Timeout;
use Weft\Runtime\Scope;
use Weft\Runtime\Task;
use Weft\Runtime\TaskInfo;

/**
 * Runs `$main` as a task and returns what it returns, once every task it started has ended.
 *
 * Inside a task it is `scope()`, and the other parameters have no effect.
 *
 * @template T
 *
 * @param callable(): T $main
 * @param list<int> $cancelOn signals that cancel the main task; a second one of the same kind acts as if Weft was not there
 * @param int $maxFibers how many tasks may be suspended at a time; more of them wait for their start
 * @param (\Closure(\Throwable, Task): void)|null $uncaught hears of failed detached tasks; by default a PHP warning
 *
 * @return T
 *
 * @throws \Throwable the first failure of `$main` or a task it started; `suppressed()` has the others
 * @throws Runtime\DeadlockException every task waits for another one
 * @throws CancelledException a signal of `$cancelOn` came
 */
function run(callable $main, array $cancelOn = [], int $maxFibers = 10_000, ?\Closure $uncaught = null): mixed
{
    if ($maxFibers < 1) {
        throw new \ValueError("maxFibers must be at least 1, got $maxFibers");
    }
    $task = Scheduler::task();

    return $task === null
        ? Scheduler::run($main, $cancelOn, $maxFibers, $uncaught)
        : Scope::open($task, static fn() => $main());
}

/**
 * Starts a task. It belongs to the innermost scope that the current task has open, or to the current task itself, and
 * that does not end before it.
 *
 * It runs when the current task suspends or ends. If it fails, its scope cancels everything in it and throws the failure.
 *
 * @throws \Error outside `run()`
 */
function async(callable $main, mixed ...$args): Task
{
    $scheduler = Scheduler::$current;
    $task = $scheduler?->running ?? throw new \Error('Weft\async() needs a scope that waits for the task: call it inside Weft\run()');

    return ($task->children ?? new Children($scheduler, $task))->start($main, $args);
}

/**
 * Starts a task that belongs to nobody. It is cancelled when `run()` ends; its failure goes to `run(uncaught: …)`.
 *
 * @throws \Error outside `run()`
 */
function detach(callable $main, mixed ...$args): Task
{
    $scheduler = Scheduler::$current ?? throw new \Error('Weft\detach() needs a loop: call it inside Weft\run()');

    return $scheduler->orphans->start($main, $args);
}

/**
 * Runs `$body` in a scope of its own: returns what it returns once every task started in it has ended.
 *
 * The first failure cancels the body and the other tasks and is thrown when all have ended.
 *
 * @template T
 *
 * @param callable(Scope): T $body
 *
 * @return T
 */
function scope(callable $body): mixed
{
    $task = Scheduler::task();

    return $task === null ? run(static fn() => scope($body)) : Scope::open($task, $body);
}

/**
 * Runs `$work` in a scope that is cancelled after `$seconds`. Of nested limits the earlier one ends the work. A result that is
 * there by then wins: nothing that was waited for and came is thrown away.
 *
 * @template T
 *
 * @param callable(): T $work
 *
 * @return T
 *
 * @throws Runtime\TimeoutException
 */
function timeout(float $seconds, callable $work): mixed
{
    // PHP 8.2's JIT takes a comparison with NAN for true.
    if (\is_nan($seconds) || $seconds < 0.0) {
        throw new \ValueError("A timeout must not be negative, got $seconds seconds");
    }
    $task = Scheduler::task();

    return $task === null ? run(static fn() => timeout($seconds, $work)) : Timeout::run($task, $seconds, $work);
}

/**
 * Runs all of them at a time and returns their results under the same keys.
 *
 * @template K of array-key
 * @template T
 *
 * @param iterable<K, (callable(): T)|Task> $work a Task is only waited for, never cancelled
 *
 * @return array<K, T>
 *
 * @throws \Throwable the first failure, after the others were cancelled and have ended
 */
function all(iterable $work): array
{
    return scope(static function (Scope $scope) use ($work): array {
        $tasks = [];
        foreach ($work as $key => $item) {
            $tasks[$key] = $scope->async($item instanceof Task ? $item->await(...) : $item);
        }

        return \array_map(static fn(Task $task): mixed => $task->await(), $tasks);
    });
}

/**
 * Runs all of them at a time, returns the result of the first that succeeds and cancels the others.
 *
 * @template T
 *
 * @param iterable<array-key, (callable(): T)|Task> $work at least one; a Task is only waited for, never cancelled
 *
 * @return T
 *
 * @throws CompositeException none succeeded
 */
function any(iterable $work): mixed
{
    return scope(static fn(Scope $scope): mixed => Race::of($scope, $work)->firstSuccess());
}

/**
 * Runs all of them at a time, cancels the others when the first ends, and returns or throws what that one did.
 *
 * @template T
 *
 * @param iterable<array-key, (callable(): T)|Task> $work at least one; a Task is only waited for, never cancelled
 *
 * @return T
 */
function race(iterable $work): mixed
{
    return scope(static fn(Scope $scope): mixed => Race::of($scope, $work)->firstEnd());
}

/**
 * Runs `$section` so that a cancellation from outside cannot interrupt it. One that came meanwhile is thrown at the next
 * suspension point after it. Scopes opened inside, such as a `timeout()`, work as ever.
 *
 * @template T
 *
 * @param callable(): T $section
 *
 * @return T
 */
function shield(callable $section): mixed
{
    $task = Scheduler::task();

    return $task === null ? $section() : $task->shield($section);
}

/** Waits. Outside `run()` the process sleeps. */
function delay(float $seconds): void
{
    // PHP 8.2's JIT takes a comparison with NAN for true.
    if (\is_nan($seconds) || $seconds < 0.0) {
        throw new \ValueError("A delay must not be negative, got $seconds seconds");
    }
    Scheduler::await(Native\sleep($seconds));
}

/**
 * Lets everything that is ready go first, and what other tasks have sent leave. Call it before and in long computations: nothing
 * else goes on while PHP computes.
 */
function yieldNow(): void
{
    $task = Scheduler::task();
    if ($task !== null) {
        $task->scheduler->yield($task);
    }
}

/**
 * Waits for one of the signals, such as `SIGTERM`, and returns the one that came.
 *
 * Only while a task waits for it does a signal not have its usual effect.
 *
 * @throws \Error the signal does not exist or cannot be caught
 */
function signal(int ...$signals): int
{
    if ($signals === []) {
        throw new \ValueError('Weft\signal() needs at least one signal to wait for');
    }

    return Signals::first(...$signals);
}

/** The task that is running, null outside `run()`. */
function current(): ?Task
{
    return Scheduler::task();
}

/** @return list<TaskInfo> every task that has not ended, oldest first: for reports and debugging, not for the hot path */
function tasks(): array
{
    return \array_map(TaskReport::of(...), Scheduler::$current?->tasks() ?? []);
}

/** @return list<\Throwable> what else failed in the scope that threw `$first`, in order of failure */
function suppressed(\Throwable $first): array
{
    return SuppressedFailures::of($first);
}
