<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Internal\Origin;
use Weft\Native;
use Weft\Pool\FactoryException;
use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Pool\PoolExhaustedException;
use Weft\Pool\ResourceNotReadyException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\Internal\Warnings;

/**
 * Creates, checks, resets and closes resources for the extension's pool: inside `run()` each in a task of its own, so that a
 * borrower can take a resource that is returned first; outside one after the other, while an operation is awaited.
 *
 * @internal
 */
final class ResourceLifecycle implements WorkHandler
{
    /** Checks and resets that an error message lists. */
    private const MAX_LISTED = 10;

    /** @var array<int, mixed> */
    public array $resources = [];

    /** @var array<'create'|'check'|'reset'|'close', array<int, Coroutine>> tasks that have not answered the pool yet, by request or resource */
    private array $running = ['create' => [], 'check' => [], 'reset' => [], 'close' => []];
    /** @var array<int, Coroutine> cancelled factories that still run, by request */
    private array $abandoned = [];
    private int $lastId = 0;
    private bool $isClosed = false;
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

    /**
     * Waits for a borrowed resource. A resource that is checked or reset counts as in use and has no holder: where the borrow fails meanwhile, the
     * message names it.
     */
    #[WaitsFor('a resource of pool "{name}"')]
    public function awaitResource(int $op): int
    {
        try {
            return $this->listener->await($op);
        } catch (PoolExhaustedException | ResourceNotReadyException $failure) {
            $verifications = $this->verifications();
            throw $verifications === '' ? $failure : Origin::place(new ($failure::class)($failure->getMessage() . $verifications, previous: $failure->getPrevious()));
        }
    }

    public function handleWork(?Scheduler $scheduler = null): void
    {
        foreach ([...$this->takeCutOff(), ...$this->native->work()] as [$kind, $subject]) {
            if ($kind === 'abandon') {
                $this->abandon($subject, 'the factory took longer than timeouts.create');
            } elseif ($kind === 'create' && $this->isClosed) {
                $this->refuse($subject);
            } elseif ($scheduler === null) {
                $this->{$kind}($subject);
            } else {
                /** @var callable $work */
                $work = [$this, $kind];
                $task = $scheduler->detached->startUnrelated($work, [$subject]);
                if ($kind === 'leak') {
                    $task->named("report of a leak of pool \"{$this->name}\"");
                } else {
                    $task->named($kind === 'create' ? "factory of pool \"{$this->name}\"" : "$kind of resource #{$subject} of pool \"{$this->name}\"");
                    $this->running[$kind][$subject] = $task;
                }
            }
        }
    }

    /**
     * Waits for the end of a pool that closes.
     *
     * @param int $closed the pool's operation
     */
    #[WaitsFor('the return of the resources of pool "{name}"')]
    public function finish(int $closed): void
    {
        $this->isClosed = true;
        foreach ($this->running['create'] as $request => $_) {
            $this->abandon($request, 'the pool is closed');
            $this->refuse($request);
        }
        $this->listener->await($closed);
        $this->handleWork();
        foreach ([...$this->abandoned, ...$this->running['close']] as $task) {
            if ($task !== Scheduler::$current?->running) {
                $task->awaitEnd();
            }
        }
        foreach ($this->takeCutOff() as [$kind, $subject]) {
            $this->{$kind}($subject);
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
                $this->fail($request, new FactoryException($message), $message);

                return;
            }
            $this->resources[$id] = $resource;
            if ($this->hooks->created !== null) {
                ($this->hooks->created)($resource);
            }
        } catch (\Throwable $thrown) {
            if (!$this->isCutOff($request)) {
                $this->fail($request, $thrown, \sprintf('pool "%s": the factory threw %s: %s', $this->name, $thrown::class, $thrown->getMessage()));
            }
            $this->close($id);

            return;
        } finally {
            unset($this->abandoned[$request]);
        }
        unset($this->running['create'][$request]);
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
        if ($resource !== null) {
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
        }
        unset($this->running['close'][$id]);
    }

    /** @param array{?int, float, ?string, int, ?string, ?string} $holder */
    public function leak(array $holder): void
    {
        LeakReport::of(Holder::of($this->name, $holder), $this->hooks);
    }

    /**
     * Work that the end of a run() has cut off: its tasks have never begun, or a factory was cancelled. That says nothing about the server, so the
     * work begins again when the pool is used next.
     *
     * @return list<array{'create'|'check'|'reset'|'close', int}>
     */
    private function takeCutOff(): array
    {
        $work = [];
        foreach ($this->running as $kind => $tasks) {
            foreach ($tasks as $subject => $task) {
                if ($task->isDone() || $task->scheduler->hasEnded()) {
                    unset($this->running[$kind][$subject]);
                    $work[] = [$kind, $subject];
                }
            }
        }

        return $work;
    }

    private function isCutOff(int $request): bool
    {
        $task = $this->running['create'][$request] ?? null;

        // Clean-up at the end of the run that waits for a resource is told.
        return $task !== null && $task->cancelled && $task->scheduler->detached->isEnding && $this->native->stats()['waiting'] === 0;
    }

    /** Cancels a factory whose resource the pool no longer waits for. */
    private function abandon(int $request, string $reason): void
    {
        $task = $this->running['create'][$request] ?? null;
        unset($this->running['create'][$request]);
        if ($task !== null) {
            $this->abandoned[$request] = $task;
            $task->cancel($reason);
        }
    }

    private function refuse(int $request): void
    {
        $this->native->failed($request, 0, "pool \"{$this->name}\" is closed");
    }

    private function fail(int $request, \Throwable $thrown, string $message): void
    {
        unset($this->running['create'][$request]);
        $this->native->failed($request, Thrown::keep($thrown), $message);
    }

    /** A check or reset that took too long still uses the resource. */
    private function endVerification(int $id): void
    {
        foreach (['check' => 'validation.timeout', 'reset' => 'timeouts.return'] as $kind => $option) {
            $task = $this->running[$kind][$id] ?? null;
            unset($this->running[$kind][$id]);
            try {
                $task?->cancel("the $kind took longer than $option");
                $task?->awaitEnd();
            } catch (CancelledException) {
                // This task ends with its run(), and the resource is closed all the same.
            }
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
            unset($this->running[$step][$id]);
        }
    }

    /** Such as `; the reset of resource #3 has run for 1.002 s`. */
    private function verifications(): string
    {
        $now = \hrtime(true) / 1e9;
        $lines = [];
        foreach (['check', 'reset'] as $kind) {
            foreach ($this->running[$kind] as $id => $task) {
                $lines[] = \sprintf('; the %s of resource #%d has run for %.3f s', $kind, $id, $now - $task->since);
            }
        }
        $more = \count($lines) - self::MAX_LISTED;

        return \implode('', \array_slice($lines, 0, self::MAX_LISTED)) . ($more > 0 ? "; and $more more" : '');
    }

    private function warn(string $step, int $id, \Throwable $thrown): void
    {
        $what = $step === 'close' ? '' : '; the resource is closed';
        Warnings::trigger(\sprintf('pool "%s": %s of resource #%d threw %s: %s%s', $this->name, $step, $id, $thrown::class, $thrown->getMessage(), $what));
    }
}
