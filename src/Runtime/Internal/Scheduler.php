<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\DeadlockException;
use Weft\Runtime\Task;

/**
 * The loop of one `run()`: starts tasks on pooled fibers, resumes them, and asks the extension what has finished.
 *
 * Properties are public where tasks and scopes touch them at every switch.
 *
 * @internal
 */
final class Scheduler
{
    /** Switches to tasks before the extension is asked again, so that I/O never starves. */
    private const BATCH = 64;
    /** Seconds after which it is asked in any case where tasks take long. */
    private const LATENCY = 0.001;
    /** Polls until what has just been started is on its way: borrowing a connection and writing to it are one each. */
    private const PASSES = 2;
    /** Idle fibers that are kept. */
    private const SPARE = 512;

    /** The one that is running, null outside `run()`. */
    public static ?self $current = null;

    public ?Coroutine $running = null;
    /** @var array<int, Coroutine> by the operation they are parked on */
    public array $waiting = [];
    /** @var list<Coroutine> that can go on */
    public array $woken = [];
    /** @var array<int, Coroutine> not started yet; keys only grow, and `$head` is the first one */
    public array $fresh = [];
    /** @var list<Coroutine> that this turn of the loop resumes */
    public array $turn = [];
    public int $lastId = 0;
    /** Seconds of the monotonic clock, as of this turn of the loop. */
    public float $now;
    public readonly DetachedTasks $orphans;
    /** @var array<int, Group> by object id: groups of tasks that no task owns, such as a server's requests */
    public array $groups = [];

    private int $head = 0;
    /** Switches left until the next poll. */
    private int $budget = self::BATCH;
    private float $polledAt = 0.0;
    /** Somebody in `$woken` may be about to compute: what others have started leaves before. */
    private bool $yielded = false;
    private int $fibers = 0;
    /** @var list<\Fiber> */
    private array $idle = [];
    private \Closure $work;
    /** @var array<int, true> by object id: every fiber of the pool, idle or not */
    private array $workers = [];
    private bool $closing = false;
    /** @var array<int, \Closure(int): void> called with the operation that has finished */
    private array $watchers = [];
    /** How many of the watchers only listen to the outside, such as for Ctrl-C. */
    private int $listeners = 0;
    private ?\Throwable $failure = null;
    /** A deadlock has been reported and everything cancelled. */
    private bool $deadlocked = false;
    private Coroutine $root;
    /** Of the servers that run here. */
    public readonly FiberShares $fiberShares;
    /** The one whose loop a destructor or a signal handler has interrupted to open this one. */
    private readonly ?self $outer;

    /** @param (\Closure(\Throwable, Task): void)|null $uncaught */
    private function __construct(callable $main, private int $maxFibers, ?\Closure $uncaught)
    {
        $this->outer = self::$current;
        $this->fiberShares = new FiberShares($maxFibers);
        $this->now = \hrtime(true) / 1e9;
        $this->work = $this->work(...);
        $this->orphans = new DetachedTasks($this, $uncaught);
        $this->root = $this->start($main, [], null, null);
        $this->root->named('main');
    }

    /**
     * Runs `$main` as the first task and returns what it returns once every task has ended.
     *
     * @param list<int> $cancelOn signals that cancel it, once
     */
    public static function run(callable $main, array $cancelOn, int $maxFibers, ?\Closure $uncaught): mixed
    {
        $scheduler = self::$current = new self($main, $maxFibers, $uncaught);
        try {
            $scheduler->listen($cancelOn);
            $scheduler->loop();
        } finally {
            self::$current = $scheduler->outer;
            $scheduler->shutDown();
        }

        return $scheduler->outcome();
    }

    /** The task that is running, null where none could be suspended. */
    public static function task(): ?Coroutine
    {
        $task = self::$current?->running;
        if ($task === null || $task->fiber === \Fiber::getCurrent()) {
            return $task;
        }

        $task->scheduler->refuseForeignFiber();

        return null;
    }

    /**
     * Waits for an operation of the extension and returns its outcome. The one choke point for everything native.
     *
     * Inside a task the task is suspended; outside `run()` the process waits.
     *
     * @throws \Weft\Exception what the operation failed with
     * @throws CancelledException the operation is cancelled, then
     */
    public static function await(int $op): mixed
    {
        $task = self::$current?->running;
        if ($task === null || isset(Blocking::$finished[$op])) {
            return Blocking::await($op);
        }
        if ($task->fiber !== \Fiber::getCurrent()) {
            return $task->scheduler->awaitInOtherFiber($op);
        }
        if ($task->interrupt !== null) {
            Native\cancel($op);
            throw $task->interruption();
        }
        $task->wait = $op;
        $task->scheduler->waiting[$op] = $task;
        try {
            \Fiber::suspend();
        } catch (\FiberError $refused) {
            return $task->scheduler->awaitWhereRefused($task, $op, $refused);
        }
        if ($task->thrown !== null) {
            throw $task->interruption();
        }

        return Native\take($op);
    }

    /**
     * Queues a task for its start.
     *
     * @param callable $main checked by whoever takes it from a user, for that is not free
     * @param array<mixed> $args
     */
    public function start(mixed $main, array $args, ?Group $group, ?Coroutine $parent): Coroutine
    {
        $task = new Coroutine();
        $task->scheduler = $this;
        $task->id = ++$this->lastId;
        $task->main = $main;
        $task->args = $args;
        $task->group = $group;
        $task->since = $this->now;
        if ($parent !== null && $parent->locals !== []) {
            $task->locals = $parent->locals;
        }

        return $this->fresh[] = $task;
    }

    /** Suspends `$task`, which must be the running one, until it is woken. */
    public function park(Coroutine $task, Wait $wait): void
    {
        if ($task->interrupt !== null) {
            $wait->abandon($task);
            throw $task->interruption();
        }
        $task->wait = $wait;
        try {
            \Fiber::suspend();
        } catch (\FiberError $refused) {
            $task->wait = null;
            $wait->abandon($task);
            throw Blocking::refusal($refused) ?? self::nobodyToWaitFor($wait);
        }
        if ($task->thrown !== null) {
            throw $task->interruption();
        }
    }

    /** Lets everything that is ready go first, and what was started leave. */
    public function yield(Coroutine $task): void
    {
        if ($task->interrupt !== null) {
            throw $task->interruption();
        }
        $this->woken[] = $task;
        $this->yielded = true;
        try {
            \Fiber::suspend();
        } catch (\FiberError $refused) {
            \array_pop($this->woken);
            throw Blocking::refusal($refused) ?? $refused;
        }
    }

    /** Calls `$done` on the loop when `$op` has finished. */
    public function watch(int $op, \Closure $done): void
    {
        $this->watchers[$op] = $done;
    }

    /** The same for an operation that alone keeps no loop waiting: without other work it would never finish. */
    public function listenTo(int $op, \Closure $done): void
    {
        $this->listeners++;
        $this->watch($op, function (int $op) use ($done): void {
            $this->listeners--;
            $done($op);
        });
    }

    public function unlisten(int $op): void
    {
        if (isset($this->watchers[$op])) {
            $this->listeners--;
            $this->unwatch($op);
        }
    }

    /** Cancels `$op` if it has not finished. */
    public function unwatch(int $op): void
    {
        if (isset($this->watchers[$op])) {
            unset($this->watchers[$op]);
            Native\cancel($op);
        }
    }

    /** `run()` throws `$failure`, after cancelling what still runs. */
    public function fail(\Throwable $failure): void
    {
        $this->failure ??= $failure;
        $this->root->end(new Cancellation($failure->getMessage(), $failure));
    }

    /** @return list<Coroutine> all that have not ended, oldest first */
    public function tasks(): array
    {
        $tasks = [];
        $this->collect($this->root->outcome === null ? [$this->root] : [], $tasks);
        $this->collect($this->orphans->members(), $tasks);
        foreach ($this->groups as $group) {
            $this->collect($group->members(), $tasks);
        }
        \ksort($tasks);

        return \array_values($tasks);
    }

    /** What waiting for something of the PHP side ends in where no task could ever wake it. */
    public static function nobodyToWaitFor(Wait $wait): DeadlockException
    {
        [, $place] = CallSites::here();

        return new DeadlockException("Waiting for {$wait->describe()} at $place would never end: there is no running task outside Weft\\run() that could wake it");
    }

    /**
     * Goes on with every other task after `exit()` in one, from a shutdown function, for as long as `$isNeeded` says so.
     *
     * @param \Closure(): bool $isNeeded
     */
    public function goOnAfterExit(\Closure $isNeeded): void
    {
        $position = \array_search($this->running, $this->turn, true);
        $woken = $position === false ? $this->turn : \array_slice($this->turn, $position + 1);
        $this->running = null;
        while ($isNeeded()) {
            $this->now = \hrtime(true) / 1e9;
            $woken = [...$woken, ...$this->woken];
            $this->woken = [];
            $this->turn = $woken;
            $this->startFresh();
            $this->resume($woken);
            $woken = [];
            $this->poll($this->woken !== [] || $this->canStart() ? 0.0 : self::LATENCY);
        }
    }

    private function outcome(): mixed
    {
        if ($this->failure !== null) {
            throw $this->failure;
        }
        if ($this->root->error !== null) {
            throw $this->root->error;
        }

        return $this->root->result;
    }

    private function loop(): void
    {
        while (true) {
            $this->now = \hrtime(true) / 1e9;
            // What yields while others start comes after what they start.
            $woken = $this->woken;
            $this->woken = [];
            $this->turn = $woken;
            $yielded = $this->yielded;
            $this->yielded = false;
            $this->startFresh();
            for ($pass = 0; $yielded && $pass < self::PASSES; $pass++) {
                $this->poll(0.0);
            }
            $this->resume($woken);
            // Released here, because a destructor may wait and so make tasks ready.
            $woken = [];
            if ($this->root->outcome !== null) {
                if ($this->orphans->members === []) {
                    return;
                }
                $this->orphans->cancel();
            }
            if ($this->woken !== [] || $this->canStart()) {
                if ($this->budget <= 0 || $this->now - $this->polledAt > self::LATENCY) {
                    $this->poll(0.0);
                }
            } elseif (!$this->isStuck()) {
                $this->poll(null);
            } elseif (!$this->breakDeadlock()) {
                return;
            }
        }
    }

    /** @param list<Coroutine> $woken */
    private function resume(array $woken): void
    {
        foreach ($woken as $task) {
            $this->running = $task;
            $task->fiber->resume();
            if (--$this->budget <= 0) {
                $this->poll(0.0);
            }
        }
        $this->running = null;
        $this->turn = [];
    }

    /** Starts what was queued before this turn, so that a task that starts others cannot outrun them. */
    private function startFresh(): void
    {
        $last = \array_key_last($this->fresh) ?? -1;
        while ($this->head <= $last && $this->canStart()) {
            if ($this->budget <= 0) {
                $this->poll(0.0);
            }
            $worker = \array_pop($this->idle);
            if ($worker !== null) {
                $worker->resume();
            } elseif (!$this->startWorker()) {
                break;
            }
        }
        $this->running = null;
    }

    private function canStart(): bool
    {
        return isset($this->fresh[$this->head]) && ($this->idle !== [] || $this->fibers < $this->maxFibers);
    }

    private function awaitInOtherFiber(int $op): mixed
    {
        try {
            $this->refuseForeignFiber();
        } catch (\Error $error) {
            Native\cancel($op);
            throw $error;
        }

        return Blocking::awaitAtShutdown($op);
    }

    /** What runs beside the running task was left behind by `exit()`, or is a fiber that somebody made inside the task. */
    private function refuseForeignFiber(): void
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber !== null && !isset($this->workers[\spl_object_id($fiber)])) {
            throw new \Error('Nothing can be waited for in a Fiber that was made inside a task: Weft\async() makes tasks that can wait');
        }
    }

    /** False when the system has no more memory for stacks: then the fibers there are have to do. */
    private function startWorker(): bool
    {
        $worker = new \Fiber($this->work);
        $this->fibers++;
        $this->workers[\spl_object_id($worker)] = true;
        try {
            $worker->start();
        } catch (\FiberError $refused) {
            throw Blocking::refusal($refused) ?? $refused;
        } catch (\Exception $refused) {
            unset($this->workers[\spl_object_id($worker)]);
            $this->fibers--;
            if ($this->fibers === 0) {
                throw $refused;
            }
            $this->maxFibers = $this->fibers;
            $this->fiberShares->shrink($this->fibers);

            return false;
        }

        return true;
    }

    /** The life of a pooled fiber: one task after the other, without going back to the loop in between. */
    private function work(): void
    {
        /** @var \Fiber $fiber */
        $fiber = \Fiber::getCurrent();
        do {
            while ($this->budget-- > 0 && ($task = $this->fresh[$this->head] ?? null) !== null) {
                unset($this->fresh[$this->head++]);
                if ($task->outcome === null) {
                    $task->fiber = $fiber;
                    $this->running = $task;
                    $task->run();
                    if ($this->running !== $task) {
                        self::reportUnwound($task);
                        return;
                    }
                }
            }
            $task = null;
            if (\count($this->idle) >= self::SPARE) {
                break;
            }
            $this->idle[] = $fiber;
            \Fiber::suspend();
        } while (!$this->closing);
        $this->fibers--;
        unset($this->workers[\spl_object_id($fiber)]);
    }

    /** Pumps the extension and makes ready what waited for the operations that have finished. */
    public function poll(?float $timeout): void
    {
        $this->budget = self::BATCH;
        $this->polledAt = $this->now;
        $this->finished(Native\poll($timeout, $this->fibers - \count($this->idle) + \count($this->fresh), $this->fibers));
    }

    /**
     * Makes ready what waited for these operations.
     *
     * Watchers come last: one that cancels a task must not take away a result that arrived together with it.
     *
     * @param list<int> $ops
     */
    public function finished(array $ops): void
    {
        $watched = $unknown = [];
        foreach ($ops as $op) {
            $task = $this->waiting[$op] ?? null;
            if ($task !== null) {
                unset($this->waiting[$op]);
                $task->wait = null;
                $this->woken[] = $task;
            } elseif (isset($this->watchers[$op])) {
                $watched[$op] = $this->watchers[$op];
                unset($this->watchers[$op]);
            } else {
                $unknown[] = $op;
            }
        }
        foreach ($watched as $op => $done) {
            $done($op);
        }
        if ($unknown !== []) {
            $this->outer === null ? Blocking::remember($unknown) : $this->outer->finished($unknown);
        }
    }

    /** PHP has destroyed the fiber under a suspended task, and clean-up code has replaced that by an exception. */
    private static function reportUnwound(Coroutine $task): void
    {
        if ($task->error !== null) {
            \trigger_error("Uncaught exception in the clean-up of task $task at the end of the process: $task->error", \E_USER_WARNING);
        }
    }

    private function isStuck(): bool
    {
        return $this->waiting === [] && \count($this->watchers) === $this->listeners || Native\running() === 0;
    }

    /** Cancels everything with a report. False when that was tried before: then the tasks are given up. */
    private function breakDeadlock(): bool
    {
        if ($this->deadlocked) {
            return false;
        }
        $this->deadlocked = true;
        $this->fail(TaskReport::deadlock($this->tasks(), $this->maxFibers));

        return true;
    }

    /** @param list<int> $signals */
    private function listen(array $signals): void
    {
        foreach ($signals as $signal) {
            $this->listeners++;
            $this->watch(Native\signal($signal), function () use ($signal): void {
                $this->listeners--;
                $this->root->end(new Cancellation("the process received signal $signal"));
            });
        }
        if ($signals !== []) {
            // Handlers are installed by the first poll: before the program's first line.
            $this->poll(0.0);
        }
    }

    private function shutDown(): void
    {
        Output::restore();
        foreach ($this->watchers as $op => $_) {
            Native\cancel($op);
        }
        foreach ($this->waiting as $op => $_) {
            Native\cancel($op);
        }
        $abandoned = $this->tasks();
        $this->watchers = $this->waiting = $this->woken = $this->fresh = [];
        $this->running = null;
        $this->closing = true;
        foreach ($this->idle as $worker) {
            $worker->resume();
        }
        // It holds this object, and this object holds it.
        $this->idle = [];
        unset($this->work);
        if ($abandoned !== []) {
            self::destroy($abandoned);
        }
    }

    /**
     * Lets PHP unwind tasks that no cancellation could end, `finally` blocks included.
     *
     * @param list<Coroutine> $tasks
     */
    private static function destroy(array $tasks): void
    {
        foreach ($tasks as $task) {
            $task->fiber = null;
        }
        \gc_collect_cycles();
    }

    /** The fiber is being destroyed, cannot switch, or the loop is gone: the process waits instead, where that can end. */
    private function awaitWhereRefused(Coroutine $task, int $op, \FiberError $refused): mixed
    {
        unset($this->waiting[$op]);
        $task->wait = null;
        $error = Blocking::refusal($refused);
        if ($error !== null) {
            Native\cancel($op);
            throw $error;
        }

        return Blocking::awaitAtShutdown($op);
    }

    /**
     * @param array<int, Coroutine> $members
     * @param array<int, Coroutine> $tasks by id
     */
    private function collect(array $members, array &$tasks): void
    {
        foreach ($members as $id => $task) {
            $tasks[$task->id] = $task;
            for ($scope = $task->children; $scope !== null; $scope = $scope->outer) {
                $this->collect($scope->members(), $tasks);
            }
        }
    }
}
