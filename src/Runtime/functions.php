<?php

declare(strict_types=1);

namespace Weft;

use Weft\Runtime\CompositeException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Hook;
use Weft\Runtime\Internal\Children;
use Weft\Runtime\Internal\Race;
use Weft\Runtime\Internal\TaskReport;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Signals;
use Weft\Runtime\Internal\SuppressedFailures;
use Weft\Runtime\Internal\Timeout;
use Weft\Runtime\Internal\WaitsFor;
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
 * @param list<int> $cancelOn signals that cancel the main task; a second signal of the same kind has its default effect
 * @param int $maxFibers how many tasks may be suspended at a time; further tasks wait before they start
 * @param (\Closure(\Throwable, Task): void)|null $uncaught receives failures of detached tasks; by default they are PHP warnings
 * @param list<Hook>|null $hooks blocking calls of libraries that suspend the task; by default those of the environment variable
 *                               `WEFT_HOOKS`, or all. Without effect in a `run()` inside of another
 * @param bool|null $queueForHandles whether a task that uses a connection, transfer or stream of a library in which another task waits gets its
 *                                   turn later, in the order in which tasks ask, instead of a {@see Runtime\HandleInUseError}; by default whether
 *                                   the environment variable `WEFT_QUEUE_FOR_HANDLES` is true
 *
 * @return T
 *
 * @throws \Throwable the first failure of `$main` or a task it started; `suppressed()` has the others
 * @throws Runtime\DeadlockException every task waits for another one
 * @throws CancelledException a signal of `$cancelOn` came
 */
function run(callable $main, array $cancelOn = [], int $maxFibers = 10_000, ?\Closure $uncaught = null, ?array $hooks = null, ?bool $queueForHandles = null): mixed
{
    if ($maxFibers < 1) {
        throw new \ValueError("maxFibers must be at least 1, got $maxFibers");
    }
    $task = Scheduler::taskToSuspend();

    return $task === null
        ? Scheduler::run($main, $cancelOn, $maxFibers, $uncaught, $hooks ?? Hook::fromEnvironment(), $queueForHandles ?? Hook::queuesForHandles())
        : Scope::open($task, static fn() => $main());
}

/**
 * Starts a task. The task belongs to the innermost open scope of the current task, or to the current task itself, which
 * does not end before it.
 *
 * It runs when the current task suspends or ends. If it fails, its scope cancels everything in it and throws the failure.
 *
 * @throws \Error outside `run()`
 */
function async(callable $main, mixed ...$args): Task
{
    $scheduler = Scheduler::$current;
    $task = $scheduler?->running ?? throw new \Error('Weft\async() needs a running event loop: call it inside Weft\run()');

    return ($task->children ?? new Children($scheduler, $task))->start($main, $args);
}

/**
 * Starts a task outside of every scope. It is cancelled when `run()` ends; its failure goes to `run(uncaught: …)`.
 *
 * @throws \Error outside `run()`
 */
function detach(callable $main, mixed ...$args): Task
{
    $scheduler = Scheduler::$current ?? throw new \Error('Weft\detach() needs a running event loop: call it inside Weft\run()');

    return $scheduler->detached->start($main, $args);
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
    $task = Scheduler::taskToSuspend();

    return $task === null ? run(static fn() => scope($body)) : Scope::open($task, $body);
}

/**
 * Runs `$work` in a scope that is cancelled after `$seconds`. With nested timeouts, the earliest one ends the work. A result
 * that has arrived by then is returned, not discarded.
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
    // The JIT of PHP 8.2 evaluates a comparison with NAN as true.
    if (\is_nan($seconds) || $seconds < 0.0) {
        throw new \ValueError('A timeout must not be negative, got ' . Internal\Number::text($seconds) . ' seconds');
    }
    $task = Scheduler::taskToSuspend();

    return $task === null ? run(static fn() => timeout($seconds, $work)) : Timeout::run($task, $seconds, $work);
}

/**
 * Runs all of them concurrently and returns their results under the same keys.
 *
 * @template K of array-key
 * @template T
 *
 * @param iterable<K, (callable(): T)|Task> $work a Task is awaited, never cancelled
 *
 * @return array<K, T>
 *
 * @throws \Throwable the first failure, after the others were cancelled and have ended
 * @throws UsageError a key comes twice, which generators allow
 * @throws \TypeError an item is neither
 */
function all(iterable $work): array
{
    return scope(static function (Scope $scope) use ($work): array {
        $tasks = [];
        foreach ($work as $key => $item) {
            isset($tasks[$key]) && throw new UsageError("Each key of the work given to Weft\\all() must be unique, {$key} comes twice");
            try {
                $tasks[$key] = $scope->async($item instanceof Task ? $item->await(...) : $item);
            } catch (\TypeError) {
                throw Race::refused('all', $key, $item);
            }
        }

        return \array_map(static fn(Task $task): mixed => $task->await(), $tasks);
    });
}

/**
 * Runs all of them concurrently, returns the result of the first that succeeds and cancels the others.
 *
 * Each is a scope: it succeeds once every task that it has started has ended, and fails with the first of them that fails.
 *
 * @template T
 *
 * @param iterable<array-key, (callable(): T)|Task> $work at least one; a Task is awaited, never cancelled
 *
 * @return T
 *
 * @throws CompositeException none succeeded
 * @throws \TypeError an item is neither
 */
function any(iterable $work): mixed
{
    return scope(static fn(Scope $scope): mixed => Race::of('any', $scope, $work)->firstSuccess());
}

/**
 * Runs all of them concurrently. When the first ends, cancels the others and returns its result or throws its failure.
 *
 * Each is a scope: it ends once every task that it has started has ended, and fails with the first of them that fails.
 *
 * @template T
 *
 * @param iterable<array-key, (callable(): T)|Task> $work at least one; a Task is awaited, never cancelled
 *
 * @return T
 *
 * @throws \TypeError an item is neither
 */
function race(iterable $work): mixed
{
    return scope(static fn(Scope $scope): mixed => Race::of('race', $scope, $work)->firstEnd());
}

/**
 * Protects `$section` from cancellation. A cancellation that arrives meanwhile is thrown at the first suspension point after the
 * section. Scopes opened inside the section, such as a `timeout()`, work as usual.
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

/** Waits `$seconds` from the call on, at least. Outside `run()` the process sleeps. With 0 the other tasks get a turn, as with {@see yieldNow()}. */
#[WaitsFor('a delay')]
function delay(float $seconds): void
{
    // The JIT of PHP 8.2 evaluates a comparison with NAN as true.
    if (\is_nan($seconds) || $seconds < 0.0) {
        throw new \ValueError('A delay must not be negative, got ' . Internal\Number::text($seconds) . ' seconds');
    }
    if ($seconds === 0.0 && Scheduler::canYield()) {
        try {
            yieldNow();

            return;
        } catch (\FiberError) {
            // The task is being destroyed: its clean-up code blocks the process.
        }
    }
    Scheduler::await(Native\sleep($seconds));
}

/**
 * Runs every task that is ready and starts pending I/O before the current task continues. Call it before and within long computations:
 * no other task runs while PHP computes.
 */
function yieldNow(): void
{
    $task = Scheduler::taskToSuspend();
    if ($task !== null) {
        $task->scheduler->yield($task);
    }
}

/**
 * Waits for one of the signals, such as `SIGTERM`, and returns the one that came.
 *
 * A signal keeps its default effect while no task waits for it.
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
    return Scheduler::context();
}

/** @return list<TaskInfo> every task that has not ended, oldest first: for reports and debugging, not for the hot path */
function tasks(): array
{
    return \array_map(TaskReport::of(...), Scheduler::$current?->tasks() ?? []);
}

/** @return list<\Throwable> the other failures of the scope that threw `$first`, in order */
function suppressed(\Throwable $first): array
{
    return SuppressedFailures::of($first);
}
