<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\DeadlockException;
use Weft\Runtime\ForkedProcessError;
use Weft\Runtime\Hook;
use Weft\Runtime\Task;
use Weft\Runtime\TaskState;

/**
 * The event loop of one `run()`: starts tasks on pooled fibers, resumes them, and polls the extension for finished operations.
 *
 * Properties that tasks and scopes use at every switch are public.
 *
 * @internal
 */
final class Scheduler
{
    /** Task switches between two polls of the extension, so that I/O never starves. */
    private const SWITCHES_PER_POLL = 64;
    /** Seconds after which the loop polls even if tasks take long. */
    private const MAX_POLL_INTERVAL = 0.001;
    /** Polls that start pending I/O: borrowing a connection takes one, writing to it another. */
    private const POLLS_PER_PASS = 2;
    /** Idle fibers that the pool keeps. */
    private const MAX_IDLE_FIBERS = 512;

    /** The running scheduler, null outside of `run()`. */
    public static ?self $current = null;

    public ?Coroutine $running = null;
    /** @var array<int, Coroutine> by the operation for which they wait */
    public array $waiting = [];
    /** @var list<Coroutine> that can go on */
    public array $woken = [];
    /** @var list<Coroutine> that go on once every ready task has run */
    public array $yielded = [];
    /** @var array<int, Coroutine> not started yet; keys only grow, `$head` is the first */
    public array $fresh = [];
    /** @var list<Coroutine> that this turn of the loop resumes */
    public array $turn = [];
    /** The task that goes on as soon as the running one waits, and is kept here until it waits itself. */
    public ?Coroutine $next = null;
    /** The task of `$turn` that was resumed last; null while none of it is. Others may have run since: new ones on its fiber, and the next one. */
    private ?Coroutine $resumed = null;
    /** Unique in the process: a resource that outlives its run must not seem to belong to a task of a later one. */
    public static int $lastId = 0;
    /** Seconds of the monotonic clock, as of this turn of the loop. */
    public float $now;
    public readonly DetachedTasks $detached;
    /** @var array<int, Group> by object id: groups of tasks that no task owns, such as a server's requests */
    public array $groups = [];
    /** @var array<int, InterruptedWork> by object id */
    public array $interruptible = [];
    /** Whether `exit()`, a fatal error or the end of the program has ended the process: PHP destroys the tasks that are left. */
    public static bool $processEnds = false;

    private int $head = 0;
    /** Switches left until the next poll. */
    private int $budget = self::SWITCHES_PER_POLL;
    private float $polledAt = 0.0;
    private int $fibers = 0;
    /** @var list<\Fiber> */
    private array $idle = [];
    private \Closure $work;
    /** @var array<int, true> by object id: every fiber of the pool, idle or not */
    private array $workers = [];
    private bool $closing = false;
    /** @var array<int, \Closure(int): void> called with the finished operation */
    private array $watchers = [];
    /** @var array<int, true> operations that are announced again and again: their watchers stay */
    private array $recurring = [];
    /** How many watchers do not keep the loop running, such as one for Ctrl-C. */
    private int $listeners = 0;
    private ?\Throwable $failure = null;
    /** A deadlock was reported and every task cancelled. */
    private bool $deadlocked = false;
    private Coroutine $root;
    /** The shares of the servers on this loop. */
    public readonly FiberShares $fiberShares;
    /** Output buffers that the program had opened before it ran the loop. */
    public readonly int $outputLevel;
    /** Whether libraries suspend the tasks. */
    private bool $hooked = false;
    /** Whether the program can have handlers of `pcntl_signal()`. */
    private readonly bool $hasSignalHandlers;
    /** The outer scheduler, if a destructor or a signal handler has opened this one inside its loop. */
    private readonly ?self $outer;

    /** @param (\Closure(\Throwable, Task): void)|null $uncaught */
    private function __construct(callable $main, private int $maxFibers, ?\Closure $uncaught)
    {
        $this->outer = self::$current;
        $this->fiberShares = new FiberShares($maxFibers);
        $this->outputLevel = \ob_get_level();
        $this->now = \hrtime(true) / 1e9;
        $this->work = $this->work(...);
        $this->hasSignalHandlers = \function_exists('pcntl_async_signals');
        $this->detached = new DetachedTasks($this, $uncaught);
        $this->root = $this->start($main, [], null, null);
        $this->root->named('main');
    }

    /**
     * Runs `$main` as the first task and returns what it returns once every task has ended.
     *
     * @param list<int> $cancelOn signals that cancel it, once
     * @param list<Hook> $hooks
     */
    public static function run(callable $main, array $cancelOn, int $maxFibers, ?\Closure $uncaught, array $hooks = [], bool $queueForHandles = false): mixed
    {
        $hooks = HookCheck::usable($hooks);
        if (\PHP_VERSION_ID >= 80600 && \ini_get('error_reporting') === '') {
            // Fibers of PHP 8.6 begin with this setting, and report nothing where it has no value.
            \ini_set('error_reporting', (string) \error_reporting());
        }
        $scheduler = new self($main, $maxFibers, $uncaught);
        // In a forked process this throws, and nothing would run what is started there.
        $outerHooks = Native\switchHooks(Hook::mask($hooks));
        $outerQueueing = Native\queueForHandles($queueForHandles);
        self::$current = $scheduler;
        try {
            $scheduler->hooked = $hooks !== [];
            $scheduler->listen($cancelOn);
            $scheduler->loopToTheEnd();
        } finally {
            self::$current = $scheduler->outer;
            $scheduler->shutDown();
            Native\switchHooks($outerHooks);
            Native\queueForHandles($outerQueueing);
        }

        return $scheduler->outcome();
    }

    /**
     * The running task, also in a Fiber that it has made; null in code that belongs to none. A destructor that the garbage collector calls becomes a
     * task of its own by asking: to read what belongs to a task, use {@see context()}.
     */
    public static function task(): ?Coroutine
    {
        $task = self::$current?->running;
        if ($task === null || $task->fiber === \Fiber::getCurrent()) {
            return $task;
        }

        return $task->scheduler->taskOfOtherFiber($task);
    }

    /**
     * The running task, to be suspended; null where none can be.
     *
     * @throws \Error the code is in a Fiber that the task has made, which would be suspended in its place
     */
    public static function taskToSuspend(): ?Coroutine
    {
        $task = self::$current?->running;
        if ($task === null || $task->fiber === \Fiber::getCurrent()) {
            return $task;
        }

        return $task->scheduler->taskToSuspendInOtherFiber($task);
    }

    /** The running task, for what it knows: a destructor that the garbage collector calls sees that of the task in which the collector runs. */
    public static function context(): ?Coroutine
    {
        $task = self::$current?->running;

        return $task === null || $task->fiber === \Fiber::getCurrent() || Native\isCollecting() ? $task : $task->scheduler->taskOfOtherFiber($task);
    }

    /** Whether the code runs in the fiber of a task. */
    public static function canYield(): bool
    {
        $task = self::$current?->running;

        return $task !== null && $task->fiber === \Fiber::getCurrent();
    }

    /**
     * Whether `$thrown` asks the running task, or a scope that it has open, to end. Code that catches it throws it again: a cancellation is
     * thrown once. A CancelledException of another task, for whose end this one has waited, is a failure like any other.
     */
    public static function isCancelledBy(\Throwable $thrown): bool
    {
        $task = self::$current?->running;

        return $thrown instanceof CancelledException && $task !== null && ($task->cancelled || $task->children?->isAsked($thrown->cancellation) === true);
    }

    /** Whether the running task, or a scope that it has open, was asked to end, also by a timeout: {@see isCancelledBy()} may hold for an exception. */
    public static function isEnding(): bool
    {
        $task = self::$current?->running;

        return $task !== null && ($task->cancelled || $task->children?->isEnding() === true);
    }

    /**
     * The exception that {@see isCancelledBy()} holds for: `$thrown`, or the one behind it, since libraries wrap what they catch.
     */
    public static function cancellationIn(\Throwable $thrown): ?CancelledException
    {
        for ($cause = $thrown; $cause !== null; $cause = $cause->getPrevious()) {
            if ($cause instanceof CancelledException && self::isCancelledBy($cause)) {
                return $cause;
            }
        }

        return null;
    }

    /**
     * A question to ask later: whether the running task, or a scope that it has open now, was cancelled meanwhile, and not by a timeout.
     * Scopes that are opened until then do not count. It needs no exception: libraries wrap those that they catch.
     *
     * @return \Closure(): bool
     */
    public static function watchCancellation(): \Closure
    {
        $task = self::task();
        $scope = $task?->children;

        return static fn(): bool => $task !== null && ($task->cancelled || $scope?->isCancelled() === true);
    }

    /**
     * The id of the task that is about to wait, 0 outside of `run()`. For an operation that begins in the call that starts it, such as a
     * statement: where nobody may wait for it, it must not begin.
     *
     * @throws CancelledException the task was cancelled before
     */
    public static function waiter(): int
    {
        $task = self::$current?->running;
        if ($task === null) {
            return 0;
        }
        if ($task->interrupt !== null) {
            throw $task->interruption();
        }
        if ($task->fiber !== \Fiber::getCurrent()) {
            $task = $task->scheduler->taskToSuspendInOtherFiber($task) ?? $task;
        }

        return $task->id;
    }

    /**
     * Waits for an operation of the extension and returns its result. Every native wait goes through here.
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
            return $task->scheduler->awaitInOtherFiber($task, $op);
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
     * Makes ready the task that waits for `$op`, which the caller has finished. It goes on as soon as the running task waits or ends, before
     * the others that are ready: a connection that comes back is used again at once, and its server has work meanwhile.
     *
     * A task that goes on this way hands over to nobody: the others are not held up for longer than by one task each.
     */
    public static function handOver(int $op): void
    {
        $scheduler = self::$current;
        if ($scheduler === null) {
            Blocking::remember([$op]);
            return;
        }
        $task = $scheduler->waiting[$op] ?? null;
        if ($task === null || $scheduler->running === null || $scheduler->next !== null) {
            $scheduler->finished([$op]);
            return;
        }
        unset($scheduler->waiting[$op]);
        $task->wait = null;
        $scheduler->next = $task;
    }

    /** Whether no task but the running one can go on before the system has news. The hooks ask before they wait. */
    public static function isAlone(): bool
    {
        $scheduler = self::$current;

        return $scheduler !== null
            && $scheduler->waiting === []
            && $scheduler->woken === []
            && $scheduler->yielded === []
            && ($scheduler->next === null || $scheduler->next === $scheduler->running)
            && ($scheduler->turn === [] || $scheduler->turn === [$scheduler->running])
            && $scheduler->outer === null
            && $scheduler->running?->interrupt === null
            && !isset($scheduler->fresh[$scheduler->head]);
    }

    /**
     * Queues a task for its start.
     *
     * @param callable $main the public functions have checked it, because the check is not free
     * @param array<mixed> $args
     */
    public function start(mixed $main, array $args, ?Group $group, ?Coroutine $parent): Coroutine
    {
        $task = new Coroutine();
        $task->scheduler = $this;
        $task->id = ++self::$lastId;
        $task->main = $main;
        $task->args = $args;
        $task->group = $group;
        $task->since = $this->now;
        if ($parent !== null) {
            $task->locals = $parent->locals;
            $task->trace = $parent->trace;
            if ($parent->realm !== null) {
                $task->realm = $parent->realm;
                $task->isRealmWork = $parent->isRealmWork;
                $task->isRealmWork && $task->realm->taskStarted();
            }
        }

        return $this->fresh[] = $task;
    }

    /** Suspends `$task`, the running task, until it is woken. */
    public function park(Coroutine $task, Wait $wait): void
    {
        if ($task->interrupt !== null) {
            $wait->abandon($task);
            throw $task->interruption();
        }
        if ($task->realm !== null && $task->fiber !== \Fiber::getCurrent()) {
            $wait->abandon($task);
            throw Blocking::refusalToCollector();
        }
        $task->wait = $wait;
        try {
            \Fiber::suspend();
        } catch (\FiberError $refused) {
            $task->wait = null;
            $wait->abandon($task);
            throw Blocking::refusal($refused) ?? self::neverWoken($wait);
        }
        if ($task->thrown !== null) {
            throw $task->interruption();
        }
    }

    /** Runs every ready task and starts pending I/O before the current task continues. */
    public function yield(Coroutine $task): void
    {
        if ($task->interrupt !== null) {
            throw $task->interruption();
        }
        if ($task->realm !== null && $task->fiber !== \Fiber::getCurrent()) {
            return;
        }
        $this->yielded[] = $task;
        try {
            \Fiber::suspend();
        } catch (\FiberError $refused) {
            \array_pop($this->yielded);
            $error = Blocking::refusal($refused);
            // As in awaitWhereRefused().
            if ($error === null || $task->realm === null) {
                throw $error ?? $refused;
            }
        } catch (\Throwable $thrown) {
            // A handler of pcntl_signal() has thrown before the task was suspended.
            $position = \array_search($task, $this->yielded, true);
            if ($position !== false) {
                \array_splice($this->yielded, $position, 1);
            }
            throw $thrown;
        }
    }

    /** Calls `$done` on the loop when `$op` has finished. */
    public function watch(int $op, \Closure $done): void
    {
        $this->watchers[$op] = $done;
    }

    /** Calls `$done` on the loop each time that `$op`, an operation that recurs, is announced, until {@see unwatch()}. */
    public function watchAll(int $op, \Closure $done): void
    {
        $this->recurring[$op] = true;
        $this->watchers[$op] = $done;
    }

    /** The same for an operation that does not keep the loop running. */
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
            unset($this->watchers[$op], $this->recurring[$op]);
            Native\cancel($op);
        }
    }

    /** `run()` throws `$failure`, after cancelling what still runs. */
    public function fail(\Throwable $failure): void
    {
        $this->failure ??= $failure;
        $this->root->end(new Cancellation($failure->getMessage(), $failure));
    }

    /** Whether its loop has ended: the tasks that are left never go on. */
    public function hasEnded(): bool
    {
        return $this->closing;
    }

    /** @return list<Coroutine> all that have not ended, oldest first */
    public function tasks(): array
    {
        $tasks = [];
        $this->collect($this->root->outcome === null ? [$this->root] : [], $tasks);
        $this->collect($this->detached->members(), $tasks);
        foreach ($this->groups as $group) {
            $this->collect($group->members(), $tasks);
        }
        \ksort($tasks);

        return \array_values($tasks);
    }

    /** The failure of a wait for a PHP object that no task can ever wake. For a task that the end of the process destroys, it is a cancellation. */
    public static function neverWoken(Wait $wait): DeadlockException|CancelledException
    {
        if (self::$processEnds && \Fiber::getCurrent() !== null) {
            return self::endOfProcess($wait->describe());
        }
        [, $place] = CallSites::here();

        return new DeadlockException("Waiting for {$wait->describe()} at $place would never end: there is no running task outside Weft\\run() that could wake it");
    }

    private static function endOfProcess(string $subject): CancelledException
    {
        return new CancelledException("Waiting for {$subject} has ended with the process", new Cancellation('the process ends'));
    }

    /**
     * Continues all other tasks after one has called `exit()`, from a shutdown function, while `$isNeeded` returns true.
     *
     * @param \Closure(): bool $isNeeded
     */
    public function goOnAfterExit(\Closure $isNeeded): void
    {
        $woken = $this->restOfTurn();
        while ($isNeeded()) {
            $this->now = \hrtime(true) / 1e9;
            $woken = [...$woken, ...$this->woken, ...$this->yielded];
            $this->woken = $this->yielded = [];
            $this->turn = $woken;
            $this->resume($woken);
            $this->turn = $woken = [];
            $this->startFresh();
            $isReady = $this->woken !== [] || $this->yielded !== [] || $this->canStart();
            $this->poll($isReady ? 0.0 : self::MAX_POLL_INTERVAL);
        }
    }

    /** @return list<Coroutine> the tasks that this turn of the loop, which is given up, has not resumed */
    private function restOfTurn(): array
    {
        $position = \array_search($this->resumed, $this->turn, true);
        $rest = $position === false ? $this->turn : \array_slice($this->turn, $position + 1);
        if ($this->next !== null && $this->next !== $this->running) {
            \array_unshift($rest, $this->next);
        }
        $this->running = $this->next = $this->resumed = null;
        $this->turn = [];

        return $rest;
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

    /**
     * A handler of `pcntl_signal()` runs wherever the signal finds the program, also between two tasks. Its exception then fails the run as that
     * of a task does: the tasks are cancelled and clean up. A second one abandons them, which also ends a loop that can never poll again.
     */
    private function loopToTheEnd(): void
    {
        try {
            $this->loop();
        } catch (ForkedProcessError $forked) {
            throw $forked;
        } catch (\Throwable $thrown) {
            $this->woken = [...$this->restOfTurn(), ...$this->woken];
            $this->fail($thrown);
            $this->loop();
        }
    }

    private function loop(): void
    {
        $isStuck = false;
        while (true) {
            $this->now = \hrtime(true) / 1e9;
            $woken = $this->woken;
            $yielded = $this->yielded;
            $this->woken = $this->yielded = [];
            // Tasks that have begun go first: after the new ones, they would wait for a whole batch of requests after each of their own waits.
            $this->turn = $yielded ? [...$woken, ...$yielded] : $woken;
            if ($woken) {
                $this->resume($woken);
            }
            // The values are released here: a destructor may wait and make tasks ready.
            $this->turn = $yielded;
            $woken = [];
            if ($this->fresh) {
                $this->startFresh();
            }
            if ($yielded) {
                // They may be about to compute, so pending I/O is started first.
                for ($pass = 0; $pass < self::POLLS_PER_PASS; $pass++) {
                    $this->poll(0.0);
                }
                $this->resume($yielded);
                $this->turn = $yielded = [];
            }
            if ($this->root->outcome !== null) {
                if ($this->detached->members === []) {
                    return;
                }
                $this->detached->cancel();
            }
            if ($this->woken || $this->yielded || isset($this->fresh[$this->head]) && $this->canStart()) {
                $isStuck = false;
                if ($this->budget <= 0 || $this->now - $this->polledAt > self::MAX_POLL_INTERVAL) {
                    $this->poll(0.0);
                }
            } elseif (!$isStuck && ($this->waiting || \count($this->watchers) !== $this->listeners)) {
                // It returns at once if no operation runs.
                $isStuck = !$this->poll(null) && Native\running() === 0;
            } elseif (!$this->breakDeadlock()) {
                return;
            }
        }
    }

    /** @param list<Coroutine> $woken */
    private function resume(array $woken): void
    {
        foreach ($woken as $task) {
            $this->running = $this->resumed = $task;
            $task->fiber->resume();
            if ($this->next !== null) {
                $this->resumeNext($this->next);
            }
            if (--$this->budget <= 0) {
                $this->running = null;
                $this->poll(0.0);
            }
        }
        $this->running = $this->resumed = null;
    }

    private function resumeNext(Coroutine $task): void
    {
        $this->budget--;
        $this->running = $task;
        $task->fiber->resume();
        $this->next = null;
    }

    /** Starts the tasks that were queued before this turn, so that a task cannot outrun the tasks it starts. */
    private function startFresh(): void
    {
        $last = \array_key_last($this->fresh) ?? -1;
        while ($this->head <= $last && $this->canStart()) {
            if ($this->budget <= 0) {
                $this->running = null;
                $this->poll(0.0);
            }
            $worker = \array_pop($this->idle);
            if ($worker !== null) {
                $worker->resume();
            } elseif (!$this->startWorker()) {
                break;
            }
            if ($this->next !== null) {
                $this->resumeNext($this->next);
            }
        }
        $this->running = null;
    }

    private function canStart(): bool
    {
        return isset($this->fresh[$this->head]) && ($this->idle !== [] || $this->fibers < $this->maxFibers);
    }

    private function awaitInOtherFiber(Coroutine $running, int $op): mixed
    {
        $isRefused = true;
        try {
            $task = $this->taskToSuspendInOtherFiber($running);
            $isRefused = false;
        } finally {
            $isRefused && Native\cancel($op);
        }
        if ($task === null) {
            return Blocking::awaitAtShutdown($op);
        }

        // Code in a realm was not written for tasks, see awaitWhereRefused().
        return $task === $running ? Blocking::await($op) : self::await($op);
    }

    /** This fiber is not that of `$running`, the running task: `exit()` has left it behind, the collector calls destructors in it, or user code has made it. */
    private function taskOfOtherFiber(Coroutine $running): ?Coroutine
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber === null || isset($this->workers[\spl_object_id($fiber)])) {
            return null;
        }

        return $running->realm === null && Native\isCollecting() ? $this->continueAsTask($fiber) : $running;
    }

    private function taskToSuspendInOtherFiber(Coroutine $running): ?Coroutine
    {
        $isCollecting = Native\isCollecting();
        $task = $this->taskOfOtherFiber($running);
        if ($task === $running && !$isCollecting) {
            throw new \Error('Code in a Fiber made inside of a task cannot wait: start a task with Weft\async() instead');
        }

        return $task;
    }

    /**
     * Makes a task of the rest of a destructor, and suspends it. The collector then calls the other destructors in another fiber, and the task in which
     * it runs goes on.
     */
    private function continueAsTask(\Fiber $destructor): Coroutine
    {
        $this->detached->start(self::resumeDestructor(...), [$destructor])->named('destructor');
        \Fiber::suspend();
        if ($this->hooked) {
            Native\hookFiber();
        }
        /** @var Coroutine */
        return $this->running;
    }

    /** The main function of such a task. It does on its own fiber what the destructor does on the other one. */
    private static function resumeDestructor(\Fiber $destructor): void
    {
        /** @var Coroutine $task */
        $task = self::$current?->running;
        $worker = $task->fiber;
        while (true) {
            $task->fiber = $destructor;
            try {
                $destructor->resume();
            } finally {
                $task->fiber = $worker;
            }
            if ($destructor->isTerminated()) {
                return;
            }
            \Fiber::suspend();
        }
    }

    /** False when the system has no memory for another stack: the existing fibers must suffice. */
    private function startWorker(): bool
    {
        $worker = new \Fiber($this->work);
        $this->fibers++;
        $this->workers[\spl_object_id($worker)] = true;
        try {
            $worker->start();
        } catch (\FiberError $refused) {
            if (self::$processEnds) {
                throw self::endOfProcess('other tasks');
            }
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

    /** The main function of a pooled fiber: runs one task after the other without returning to the loop. */
    private function work(): void
    {
        /** @var \Fiber $fiber */
        $fiber = \Fiber::getCurrent();
        if ($this->hooked) {
            Native\hookFiber();
        }
        do {
            while ($this->budget-- > 0 && $this->next === null && ($task = $this->fresh[$this->head] ?? null) !== null) {
                unset($this->fresh[$this->head++]);
                if ($task->outcome === null) {
                    $task->fiber = $fiber;
                    $this->running = $task;
                    $task->realm === null ? $task->run() : self::runInRealm($task, $task->realm);
                    Output::endTask();
                    if ($this->running !== $task) {
                        self::reportUnwound($task);
                        return;
                    }
                }
            }
            $task = null;
            if (\count($this->idle) >= self::MAX_IDLE_FIBERS) {
                break;
            }
            $this->idle[] = $fiber;
            \Fiber::suspend();
        } while (!$this->closing);
        $this->fibers--;
        unset($this->workers[\spl_object_id($fiber)]);
    }

    /** The fiber is one of the pool: it must not stay in the realm. */
    private static function runInRealm(Coroutine $task, Native\Realm $realm): void
    {
        $realm->enter();
        try {
            $task->run();
        } finally {
            Native\Realm::leave();
        }
    }

    /** Polls the extension and makes ready the tasks whose operations have finished. False if none has. */
    public function poll(?float $timeout): bool
    {
        $this->budget = self::SWITCHES_PER_POLL;
        $this->polledAt = $this->now;
        // A handler of pcntl_signal() that throws on the way out of the call would lose the operations that it returns.
        $isAsync = $this->hasSignalHandlers && \pcntl_async_signals(false);
        try {
            $ops = Native\poll($timeout, $this->fibers - \count($this->idle) + \count($this->fresh), $this->fibers);
            $this->finished($ops);
        } finally {
            $isAsync && $this->dispatchSignals();
        }

        return (bool) $ops;
    }

    /** Calls the handlers of the signals that came during the poll, and ends the run in the ordinary way if one throws. */
    private function dispatchSignals(): void
    {
        \pcntl_async_signals(true);
        try {
            \pcntl_signal_dispatch();
        } catch (\Throwable $thrown) {
            $this->fail($thrown);
        }
    }

    /**
     * Makes ready the tasks that wait for these operations.
     *
     * Watchers run last: a watcher that cancels a task must not discard a result that has arrived in the same poll.
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
                if (!isset($this->recurring[$op])) {
                    unset($this->watchers[$op]);
                }
            } else {
                $unknown[] = $op;
            }
        }
        foreach ($watched as $op => $done) {
            $done($op);
        }
        if ($unknown) {
            $this->outer === null ? Blocking::remember($unknown) : $this->outer->finished($unknown);
        }
    }

    /** PHP has destroyed the fiber of a suspended task, and its clean-up code has thrown an exception. */
    private static function reportUnwound(Coroutine $task): void
    {
        if ($task->error !== null && $task->outcome !== TaskState::Cancelled) {
            Warnings::trigger("Uncaught exception in the clean-up of task {$task->label()} at the end of the process: $task->error");
        }
    }

    /** Reports the deadlock and cancels every task. False if that has happened before: the tasks are abandoned. */
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
            $this->listenTo(Native\signal($signal), function (int $op) use ($signal): void {
                try {
                    Native\take($op);
                } catch (\Throwable $uncatchable) {
                    $this->fail($uncatchable);

                    return;
                }
                $this->root->end(new Cancellation("the process received signal $signal"));
            });
        }
        if ($signals !== []) {
            // The first poll installs the handlers, before the first line of the program runs.
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
        $this->watchers = $this->waiting = $this->woken = $this->yielded = $this->fresh = [];
        $this->running = $this->next = $this->resumed = null;
        $this->closing = true;
        foreach ($this->idle as $worker) {
            $worker->resume();
        }
        // Breaks a reference cycle between the fiber and this object.
        $this->idle = [];
        unset($this->work);
        if ($abandoned !== []) {
            self::destroy($abandoned);
        }
    }

    /**
     * Makes PHP unwind the tasks that ignored their cancellation, including their `finally` blocks.
     *
     * @param list<Coroutine> $tasks
     */
    private static function destroy(array $tasks): void
    {
        foreach ($tasks as $task) {
            // Channels and locks outlive the run. Before the first task unwinds: its clean-up hands on what it holds.
            if ($task->wait instanceof Wait) {
                $task->wait->abandon($task);
                $task->wait = null;
            }
        }
        foreach ($tasks as $task) {
            $task->fiber = null;
        }
        \gc_collect_cycles();
    }

    /** The fiber is being destroyed or cannot switch, or the loop has ended: the process blocks instead, if the wait can end. */
    private function awaitWhereRefused(Coroutine $task, int $op, \FiberError $refused): mixed
    {
        unset($this->waiting[$op]);
        $task->wait = null;
        $error = Blocking::refusal($refused);
        if ($error !== null && ($task->realm !== null || Blocking::isCompilation($refused))) {
            // Code in a realm was not written for tasks: Laravel sends jobs in a destructor. And an error handler that logs by network cannot know which code
            // it is called for. The process waits.
            return Blocking::await($op);
        }
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
