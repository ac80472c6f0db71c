<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Native\SqlDatabase;
use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Pool\Internal\LeakReport;
use Weft\Pool\Internal\WorkListener;
use Weft\Pool\Internal\WorkHandler;
use Weft\Pool\Internal\Thrown;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Warnings;
use Weft\Sql\Session;

/**
 * Calls the hooks of a database and reports leaks. A database without hooks and leak threshold has no runner.
 *
 * @internal
 */
final class HookRunner implements WorkHandler
{
    private readonly WorkListener $listener;
    /** @var array<int, Coroutine> running hooks, by the number of their call */
    private array $running = [];
    /** @var array<int, array{Coroutine, int}> hooks of connections that are closed, by task, with the number of the session */
    private array $closing = [];

    public function __construct(private readonly SqlDatabase $native, private readonly string $pool, private readonly Hooks $hooks)
    {
        $this->listener = new WorkListener($native, $this);
        $this->listener->listen();
    }

    /** Waits for an operation of the database and handles its pool's work meanwhile. */
    public function await(int $op): mixed
    {
        return $this->listener->await($op);
    }

    /** The same for a database that may have no runner. */
    public static function through(?self $hookRunner, int $op): mixed
    {
        return $hookRunner === null ? Scheduler::await($op) : $hookRunner->await($op);
    }

    public function handleWork(?Scheduler $scheduler = null): void
    {
        foreach ($this->native->work() as $work) {
            [$kind, $subject] = $work;
            if ($kind === 'abandon' && \is_int($subject)) {
                ($this->running[$subject] ?? null)?->cancel('the borrower no longer waits for the hook');
            } elseif ($scheduler === null) {
                $this->work($kind, $subject, $work[2] ?? 0);
            } else {
                // In a task of its own: a hook may wait.
                $task = $scheduler->detached->startUnrelated($this->work(...), [$kind, $subject, $work[2] ?? 0]);
                if ($kind === 'closed') {
                    $this->closing[$task->id] = [$task, $work[2] ?? 0];
                } elseif (\is_int($subject)) {
                    $this->running[$subject] = $task;
                }
            }
        }
    }

    /** Waits until the hooks of all closed connections have ended. */
    public function finish(): void
    {
        $this->handleWork();
        foreach ($this->closing as $id => [$task, $session]) {
            if ($task === Scheduler::$current?->running) {
                continue;
            }
            $task->awaitEnd();
            if (isset($this->closing[$id])) {
                // The end of its run() has cancelled it before it began.
                unset($this->closing[$id]);
                $this->call('closed', 0, $session);
            }
        }
    }

    /**
     * @param int|array{?int, float, ?string, int, ?string, ?string} $subject the number of a call, or the holder of a leak
     * @param int $session the server's number of it; 0 for a leak
     */
    private function work(string $kind, int|array $subject, int $session): void
    {
        if (\is_array($subject)) {
            LeakReport::of(Holder::of($this->pool, $subject), $this->hooks);
        } else {
            $this->call($kind, $subject, $session);
        }
    }

    /** @param int $call the number of the call; 0 when the connection is closed already */
    private function call(string $point, int $call, int $session): void
    {
        $hook = $point === 'renewed' ? 'created' : $point;
        /** @var \Closure(mixed): void $run the extension asks only for hooks that are set */
        $run = $this->hooks->{$hook};
        try {
            $run(new Session($this->native, $call, $session));
        } catch (\Throwable $thrown) {
            $message = \sprintf('pool "%s": the hook "%s" threw %s: %s', $this->pool, $hook, $thrown::class, $thrown->getMessage());
            $this->native->hookThrew($call, Thrown::keep($thrown), $message);
            $isReported = $point === 'created' || $point === 'borrowed' || $thrown instanceof CancelledException;
            if (!$isReported) {
                Warnings::trigger("$message; the connection is closed");
            }

            return;
        } finally {
            unset($this->running[$call], $this->closing[Scheduler::$current?->running->id ?? 0]);
        }
        $this->native->hookReturned($call);
    }
}
