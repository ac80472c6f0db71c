<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Native;
use Weft\Pool\FactoryException;
use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Warning;
use Weft\Runtime\Task;

/**
 * Creates, checks, resets and closes resources for the extension's pool: inside `run()` each in a task of its own, so that a
 * borrower can take a resource that is returned first; outside one after the other, while an operation is awaited.
 *
 * @internal
 */
final class ResourceLifecycle implements WorkHandler
{
    /** @var array<int, mixed> */
    public array $resources = [];

    /** @var array<int, Coroutine> running factories, by request */
    private array $creating = [];
    /** @var array<int, Coroutine> running checks and resets, by resource */
    private array $verifying = [];
    /** @var array<int, Task> tasks that close resources, by resource */
    private array $closing = [];
    private int $lastId = 0;
    private readonly WorkListener $listener;

    public function __construct(
        private readonly Native\Pool $native,
        private readonly string $name,
        private readonly \Closure $factory,
        private readonly ?\Closure $check,
        private readonly ?\Closure $reset,
        private readonly ?\Closure $close,
        private readonly Hooks $hooks,
    ) {
        $this->listener = new WorkListener($native, $this);
    }

    /** Waits for an operation of the pool and handles the pool's work meanwhile. */
    public function await(int $op): mixed
    {
        return $this->listener->await($op);
    }

    /** For a borrower: what the end of a run has cut off says nothing about the server. */
    public function createAgain(): void
    {
        foreach ($this->cutOff() as $request) {
            $this->begin('create', $request, Scheduler::$current);
        }
    }

    /** Before the pool is closed: no borrower comes for them any more. */
    public function giveUpCreations(): void
    {
        foreach ($this->cutOff() as $request) {
            $message = "pool \"{$this->name}\": the end of run() has cut off the factory";
            $this->native->failed($request, Thrown::keep(new FactoryException($message)), $message);
        }
    }

    /** @return list<int> the requests of the factories that the end of a run has cut off, once */
    private function cutOff(): array
    {
        $requests = [];
        foreach ($this->creating as $request => $task) {
            if ($task->isDone()) {
                unset($this->creating[$request]);
                $requests[] = $request;
            }
        }

        return $requests;
    }

    public function handleWork(?Scheduler $scheduler = null): void
    {
        foreach ($this->native->work() as [$kind, $subject]) {
            if (\is_array($subject)) {
                LeakReport::give(Holder::of($this->name, $subject), $this->hooks->leaked);
            } elseif ($kind === 'abandon') {
                $task = $this->creating[$subject] ?? null;
                unset($this->creating[$subject]);
                $task?->cancel('the factory took longer than timeouts.create');
            } else {
                $this->begin($kind, $subject, $scheduler);
            }
        }
    }

    private function begin(string $kind, int $subject, ?Scheduler $scheduler): void
    {
        if ($scheduler === null) {
            $this->{$kind}($subject);

            return;
        }
        /** @var callable $work */
        $work = [$this, $kind];
        $task = $scheduler->detached->start($work, [$subject]);
        if ($kind === 'create') {
            $this->creating[$subject] = $task;
        } elseif ($kind === 'close') {
            $this->closing[$subject] = $task;
        } else {
            $this->verifying[$subject] = $task;
        }
    }

    /** Waits until all resources that are being closed are closed. */
    public function finish(): void
    {
        $this->handleWork();
        foreach ($this->closing as $id => $task) {
            unset($this->closing[$id]);
            if ($task === Scheduler::$current?->running) {
                continue;
            }
            try {
                $task->await();
            } catch (CancelledException $cancelled) {
                if (Scheduler::isCancelledBy($cancelled)) {
                    throw $cancelled;
                }
                // The end of an earlier run has cut it off, perhaps before it began.
                $this->close($id);
            }
        }
    }

    public function create(int $request): void
    {
        $id = ++$this->lastId;
        try {
            $resource = ($this->factory)();
            $problem = match (true) {
                $resource === null => 'null instead of a resource',
                (\is_object($resource) || \is_resource($resource)) && \in_array($resource, $this->resources, true)
                    => 'a ' . \get_debug_type($resource) . ' that is in the pool already; it must create a new one for each call',
                default => null,
            };
            if ($problem !== null) {
                $message = "pool \"{$this->name}\": the factory returned $problem";
                unset($this->creating[$request]);
                $this->native->failed($request, Thrown::keep(new FactoryException($message)), $message);

                return;
            }
            $this->resources[$id] = $resource;
            if ($this->hooks->created !== null) {
                ($this->hooks->created)($resource);
            }
        } catch (\Throwable $thrown) {
            // Clean-up at the end of the run that waits for a resource is told; without any the next run creates it.
            if (isset($this->creating[$request]) && Scheduler::isCancelledBy($thrown) && $this->native->stats()['waiting'] === 0) {
                $this->close($id);

                return;
            }
            unset($this->creating[$request]);
            $message = \sprintf('pool "%s": the factory threw %s: %s', $this->name, $thrown::class, $thrown->getMessage());
            $this->native->failed($request, Thrown::keep($thrown), $message);
            $this->close($id);

            return;
        }
        unset($this->creating[$request]);
        if (!$this->native->created($request, $id)) {
            $this->close($id);
        }
    }

    public function check(int $id): void
    {
        $this->native->verified($id, $this->passes($this->check, 'check', $id));
    }

    public function reset(int $id): void
    {
        $this->native->verified($id, $this->passes($this->reset, 'reset', $id));
    }

    public function close(int $id): void
    {
        $resource = $this->resources[$id] ?? null;
        unset($this->resources[$id]);
        if ($resource === null) {
            return;
        }
        $this->endVerification($id);
        foreach ([$this->close, $this->hooks->closed] as $closure) {
            try {
                if ($closure !== null) {
                    $closure($resource);
                }
            } catch (\Throwable $thrown) {
                $this->warn('close', $id, $thrown);
            }
        }
        unset($this->closing[$id]);
    }

    /** A check or reset that took too long still uses the resource. */
    private function endVerification(int $id): void
    {
        $task = $this->verifying[$id] ?? null;
        unset($this->verifying[$id]);
        try {
            $task?->cancel('the pool no longer waits for it and closes the resource');
            $task?->await();
        } catch (CancelledException) {
            // It had not begun; or this task ends with its run(), and the resource is closed all the same.
        }
    }

    /** Whether a check succeeds. The resource is closed after `false` or an exception. */
    private function passes(?\Closure $closure, string $step, int $id): bool
    {
        try {
            return $closure === null || $closure($this->resources[$id]) !== false;
        } catch (\Throwable $thrown) {
            $this->warn($step, $id, $thrown);

            return false;
        } finally {
            unset($this->verifying[$id]);
        }
    }

    private function warn(string $step, int $id, \Throwable $thrown): void
    {
        $what = $step === 'close' ? '' : '; the resource is closed';
        Warning::raise(\sprintf('pool "%s": %s of resource #%d threw %s: %s%s', $this->name, $step, $id, $thrown::class, $thrown->getMessage(), $what));
    }
}
