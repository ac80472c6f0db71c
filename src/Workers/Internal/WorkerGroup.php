<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Psr\Log\LoggerInterface;
use Weft\Native;
use Weft\Workers\SupervisorException;

/**
 * All workers of a supervisor: starts them, replaces them one at a time, and logs why each one ended.
 *
 * @internal
 */
final class WorkerGroup
{
    /** Seconds between SIGTERM and SIGKILL for a worker whose event loop is blocked. */
    private const HANG_KILL_DELAY = 2.0;
    /** Limits of age and requests are reduced by up to this fraction, so that workers are not recycled all at once. */
    private const JITTER = 0.1;
    /** Why a worker was killed that was not ready within `--start-timeout`. */
    private const START_TIMEOUT = 'start timeout';

    /** @var array<int, Slot> by index */
    public readonly array $slots;
    /** @var array<int, Process> every running process by pid */
    public array $processes = [];
    /** @var list<Slot> slots that the current reload has not replaced yet */
    private array $toReplace = [];
    private string $reloadReason = '';
    /** When the current reload began, null when there is none. */
    public ?float $reloadSince = null;
    public bool $stopping = false;
    /** Whether a worker has ever been ready. */
    public bool $wasReady = false;
    /** A worker has failed, crashed or been killed during the stop: what it had to finish may be unfinished. */
    public bool $stopFailed = false;
    /** @var list<string> addresses that workers have reported */
    private array $addresses = [];

    public function __construct(
        private readonly RunOptions $options,
        private readonly Native\Supervisor $native,
        private readonly LoggerInterface $log,
    ) {
        $slots = [];
        for ($index = 1; $index <= $options->workers; $index++) {
            $slots[$index] = new Slot($index);
        }
        $this->slots = $slots;
    }

    public function ready(): int
    {
        return \count(\array_filter($this->slots, static fn(Slot $slot): bool => $slot->current?->state === State::Ready));
    }

    /** How many workers are ready and pass all health checks of the application. */
    public function healthy(): int
    {
        return \count(\array_filter($this->slots, static function (Slot $slot): bool {
            $worker = $slot->current;

            return $worker !== null && $worker->state === State::Ready && $worker->failing === [] && $worker->running === null;
        }));
    }

    /** @return list<string> the health checks that fail, with their workers */
    public function failing(): array
    {
        $failing = [];
        foreach ($this->slots as $slot) {
            foreach ($slot->current->failing ?? [] as $check) {
                $failing[] = "{$check} (worker {$slot->index})";
            }
        }

        return $failing;
    }

    /** Whether every worker has failed `--max-crashes` times in a row and none is ready. */
    public function hasGivenUp(): bool
    {
        foreach ($this->slots as $slot) {
            // A worker that was ready and is now ended for a hang counts when it has ended: only then it is known how long it worked.
            if ($slot->failures < $this->options->maxCrashes || $slot->current?->readyAt !== null) {
                return false;
            }
        }

        return true;
    }

    /**
     * Starts workers that are due and kills those that have exceeded a time limit.
     *
     * @throws SupervisorException a worker cannot be started, and none has ever been ready
     */
    public function tick(float $now): void
    {
        foreach ($this->processes as $process) {
            $this->enforce($process, $now);
        }
        if ($this->stopping) {
            return;
        }
        foreach ($this->slots as $slot) {
            if ($slot->current === null && $slot->next === null && $now >= $slot->startAt) {
                $slot->current = $this->start($slot, $now);
                if ($slot->current === null) {
                    $slot->failed(null, $now);
                    $this->logRestart($slot, $now);
                }
            }
        }
        $this->replaceNext($now);
    }

    /** Seconds until {@see self::tick()} has work to do if nothing else happens. */
    public function secondsUntilDue(float $now): float
    {
        $due = $now + 1.0;
        foreach ($this->stopping ? [] : $this->slots as $slot) {
            if ($slot->current === null && $slot->next === null) {
                $due = \min($due, $slot->startAt);
            }
        }
        foreach ($this->processes as $process) {
            $due = \min($due, $process->killAt ?? $due);
        }

        return \max(0.0, $due - $now);
    }

    public function reload(string $reason, float $now): void
    {
        $this->log->notice('reload: {reason}', ['reason' => $reason]);
        $this->reloadReason = $reason;
        $this->reloadSince = $now;
        $this->toReplace = \array_values($this->slots);
        foreach ($this->slots as $slot) {
            $slot->failures = 0;
            $slot->startAt = $now;
            $slot->resetBackOff();
            $slot->resetRecycling();
            if ($slot->next !== null) {
                $this->drain($slot->next, 'superseded by another reload', $now);
                $slot->next = null;
            }
        }
    }

    public function stop(string $reason, float $now): void
    {
        $this->stopping = true;
        $this->toReplace = [];
        foreach ($this->processes as $process) {
            // One that has left stops already, and a signal could end it before it has told why.
            $process->hasLeft || $this->drain($process, $reason, $now);
        }
    }

    public function kill(string $reason): void
    {
        foreach ($this->processes as $process) {
            $process->reason ??= $reason;
            $this->native->kill($process->pid, Signal::SIGKILL->value);
        }
    }

    public function markReady(Process $process, float $now): void
    {
        if ($process->state !== State::Starting) {
            return;
        }
        $this->wasReady = true;
        $process->state = State::Ready;
        $process->readyAt = $now;
        $this->log->info(Process::NAME . " is ready after {seconds} s", $process->context() + ['seconds' => \round($now - $process->startedAt, 3)]);
        $slot = $process->slot;
        $slot->started();
        if ($slot->next === $process) {
            $old = $slot->current;
            $slot->current = $process;
            $slot->next = null;
            // Before the sockets of the old worker are closed, also of one that has left.
            $this->native->startListening($process->pid);
            if ($old !== null) {
                $this->drain($old, $slot->replaceReason, $now);
            }
        }
        $this->finishReload($now);
    }

    /** Logs the call that blocks the event loop of a worker. */
    public function reportBlocked(Process $process, BlockedLoop $blocked): void
    {
        $this->log->warning(
            Process::NAME . " is blocked: {function} has held up the event loop for {seconds} s\n{stack}",
            $process->context() + $blocked->context(),
        );
    }

    /** Ends a worker whose event loop has been blocked for `--hang-timeout`, by SIGKILL if SIGTERM does not. */
    public function endHung(Process $process, BlockedLoop $blocked, float $now): void
    {
        $this->log->error(
            Process::NAME . " hangs: its event loop has been blocked for {seconds} s in {function}\n{stack}",
            $process->context() + $blocked->context(),
        );
        $process->isFaulty = true;
        $this->drain($process, 'hang', $now);
        $process->killAt = \min((float) $process->killAt, $now + self::HANG_KILL_DELAY);
    }

    /**
     * Logs each address once, however many workers listen on it.
     *
     * @param list<string> $addresses
     */
    public function reportListening(array $addresses): void
    {
        foreach (\array_diff($addresses, $this->addresses) as $address) {
            $this->addresses[] = $address;
            $this->log->notice('listening on {address}', ['address' => $address]);
        }
    }

    /** @param list<string> $tasks */
    public function reportDraining(Process $process, array $tasks, float $now): void
    {
        $isFirst = $process->running === null;
        $process->running = $tasks;
        if ($isFirst) {
            if ($process->state === State::Ready) {
                $this->leave($process, $now);
            }
            $this->finishReload($now);
        }
        // Most workers have drained before the second report.
        if ($tasks !== [] && !$isFirst) {
            $this->log->info(Process::NAME . " drains, still running:\n{running}", $process->context() + ['running' => \implode("\n", $tasks), 'tasks' => \count($tasks)]);
        }
    }

    /** A worker stops although it was not asked to: its application has failed, say. The next one starts while it completes what is in flight. */
    private function leave(Process $process, float $now): void
    {
        $process->state = State::Draining;
        $process->killAt = $now + $this->options->drainTimeout;
        $process->hasLeft = true;
        $slot = $process->slot;
        $slot->current = null;
        $slot->failed($process, $now);
        $slot->next === null && $this->logRestart($slot, $now);
    }

    public function handleExit(int $pid, ?int $code, ?int $signal, float $now, bool $isStartedAgain = true): void
    {
        $process = $this->processes[$pid] ?? null;
        if ($process === null) {
            return;
        }
        unset($this->processes[$pid]);
        $slot = $process->slot;
        $wasNext = $slot->next === $process;
        if ($wasNext) {
            $slot->next = null;
        } elseif ($slot->current === $process) {
            $slot->current = null;
        }
        $this->report($process, $code, $signal, $now);
        $this->stopFailed = $this->stopFailed || $this->stopping && !self::hasStopped($code, $signal);
        $expected = $process->reason !== null && !$process->isFaulty;
        if (!$expected && $wasNext) {
            $this->abandonReload($slot, $process->context(), $now);
        } elseif (!$expected && !$this->stopping && $isStartedAgain && !$process->hasLeft) {
            $slot->failed($process, $now);
            if ($this->isHopeless($process, $code, $signal)) {
                $this->awaitChange($slot);
            } elseif ($slot->next === null) {
                // A successor that has been started already takes its place otherwise.
                $this->logRestart($slot, $now);
            }
        }
        $this->finishReload($now);
    }

    /**
     * Whether it makes no sense to start the same code again: while sources are watched, after it has failed to start twice in the same way. An
     * address that is in use may be free later.
     */
    private function isHopeless(Process $process, ?int $code, ?int $signal): bool
    {
        if ($this->reloadSince !== null && $process->startedAt < $this->reloadSince) {
            // It ran the code before the change.
            return false;
        }
        $isSame = $process->readyAt === null && $process->slot->failedToStart($signal === null ? "exit code $code" : Signal::name($signal));

        return $isSame && $this->options->watch !== [] && $process->refusal === null && $process->slot->next === null;
    }

    private function awaitChange(Slot $slot): void
    {
        $isFirst = \array_filter($this->slots, static fn(Slot $other): bool => $other->awaitsReload()) === [];
        $slot->awaitReload();
        $isFirst && $this->log->warning('{file} does not start: waiting for a change', ['file' => $this->options->application]);
    }

    /** Whether a worker has ended as one that is asked to stop does. SIGTERM has its default action until the program waits for it. */
    private static function hasStopped(?int $code, ?int $signal): bool
    {
        return $signal === null ? $code === 0 : $signal === Signal::SIGTERM->value;
    }

    /** Recycles one worker that has reached a limit. */
    public function recycle(float $now): void
    {
        foreach ($this->slots as $slot) {
            $process = $slot->current;
            if ($process === null || $process->state !== State::Ready) {
                continue;
            }
            $memory = $process->memory();
            WorkerMetrics::memory($slot->index, $memory);
            if ($this->options->maxMemory !== null && $memory >= $this->options->maxMemory) {
                $process->outgrownAt ??= $now;
            }
            $reason = $this->limitReached($process, $memory, $now);
            if ($reason !== null && $now >= $slot->replaceAt && !$this->stopping && !$this->isReplacing() && $this->toReplace === []) {
                $this->log->info(Process::NAME . ' is recycled: {reason}', $process->context() + ['reason' => $reason]);
                $process->outgrownAt === null || $this->limitMemoryRecycling($process, $memory, $now);
                $this->replace($slot, "recycled: $reason", $now);
            }
        }
    }

    /** A successor needs as much as a worker that has reached the limit at its start, and each one costs a start of the application. */
    private function limitMemoryRecycling(Process $process, int $memory, float $now): void
    {
        $delay = $process->slot->outgrown($process, $now);
        if ($delay !== null) {
            $this->log->warning(
                Process::NAME . ' has {memory} bytes of memory {seconds} s after it was ready, and --max-memory is {limit}: raise it above what the application needs; not recycled for memory again within {not_again_within} s',
                $process->context() + [
                    'memory' => $memory,
                    'seconds' => \round($now - (float) $process->readyAt, 1),
                    'limit' => (int) $this->options->maxMemory,
                    'not_again_within' => \round($delay, 2),
                ],
            );
        }
    }

    /** @return array<string, int> how many processes are in each state */
    public function states(): array
    {
        $states = [];
        foreach (State::cases() as $state) {
            $states[$state->value] = 0;
        }
        foreach ($this->processes as $process) {
            $states[$process->state->value]++;
        }

        return $states;
    }

    /**
     * Starts a process for the slot. It takes a descriptor, memory and the program's file, which may be missing only for a moment, such as
     * while PHP is upgraded: that must not end workers that serve.
     *
     * @return Process|null null if it cannot be started
     *
     * @throws SupervisorException it cannot be started, and no worker has ever been ready
     */
    private function start(Slot $slot, float $now): ?Process
    {
        $environment = $this->options->environment + [
            'WEFT_WORKER' => (string) $slot->index,
            'WEFT_WORKERS' => (string) $this->options->workers,
            'WEFT_DRAIN_TIMEOUT' => (string) $this->options->drainTimeout,
        ];
        foreach (['WEFT_HANG_TIMEOUT' => $this->options->hangTimeout, 'WEFT_BLOCK_WARNING' => $this->options->blockWarning] as $name => $seconds) {
            $seconds === null || $environment[$name] = (string) $seconds;
        }
        try {
            $pid = $this->native->spawn($slot->index, $this->options->command, $environment);
        } catch (SupervisorException $failure) {
            if (!$this->wasReady) {
                throw $failure;
            }
            $this->log->error('worker {worker}: {reason}', ['worker' => $slot->index, 'reason' => $failure->getMessage()]);

            return null;
        }
        $maxAge = $this->options->maxAge === null ? null : $this->options->maxAge * (1 - self::JITTER * \random_int(0, 1000) / 1000);
        $process = $this->processes[$pid] = new Process($pid, $slot, $now, $maxAge);
        WorkerMetrics::started();
        $this->log->info(Process::NAME . " started", $process->context());

        return $process;
    }

    private function logRestart(Slot $slot, float $now): void
    {
        $this->log->log(
            $slot->failures === 1 ? 'info' : 'warning',
            'worker {worker} is started again in {seconds} s; failures in a row: {failures}',
            ['worker' => $slot->index, 'seconds' => \round($slot->startAt - $now, 2), 'failures' => $slot->failures],
        );
    }

    /** Starts a successor of the slot's worker, which ends for this reason once the successor is ready. */
    private function replace(Slot $slot, string $reason, float $now): void
    {
        // The current worker gets the reason when it is told to end: until then its end is a crash.
        $slot->replaceReason = $reason;
        $slot->next = $this->start($slot, $now);
        if ($slot->next === null) {
            $this->abandonReload($slot, ['worker' => $slot->index], $now);
        }
    }

    private function drain(Process $process, string $reason, float $now): void
    {
        if ($process->state === State::Draining) {
            return;
        }
        $process->state = State::Draining;
        $process->reason = $reason;
        $process->killAt = $now + $this->options->drainTimeout;
        $this->native->kill($process->pid, Signal::SIGTERM->value);
    }

    private function enforce(Process $process, float $now): void
    {
        if ($process->state === State::Starting && $now - $process->startedAt >= $this->options->startTimeout) {
            $this->log->error(Process::NAME . " was not ready within {seconds} s and is killed", $process->context() + ['seconds' => $this->options->startTimeout]);
            $process->reason = self::START_TIMEOUT;
            $process->isFaulty = true;
            $process->killAt = $now;
        }
        if ($process->killAt !== null && $now >= $process->killAt) {
            $process->killAt = null;
            if ($process->state === State::Draining && !$process->isFaulty) {
                $running = $process->running ?? [];
                $this->log->error(
                    Process::NAME . ' did not end within {seconds} s and is killed' . ($running === [] ? '' : ", still running:\n{running}"),
                    $process->context() + ['seconds' => $this->options->drainTimeout] + ($running === [] ? [] : ['running' => \implode("\n", $running)]),
                );
            }
            $process->state = State::Draining;
            $this->native->kill($process->pid, Signal::SIGKILL->value);
        }
    }

    private function replaceNext(float $now): void
    {
        while ($this->toReplace !== [] && !$this->isReplacing()) {
            $slot = \array_shift($this->toReplace);
            $current = $slot->current;
            if ($current !== null && $this->reloadSince !== null && $current->startedAt < $this->reloadSince) {
                $this->replace($slot, $this->reloadReason, $now);

                return;
            }
            // The process was started after the reload began: it runs the new code, and may be ready already.
            $this->finishReload($now);
        }
    }

    private function isReplacing(): bool
    {
        foreach ($this->slots as $slot) {
            if ($slot->next !== null) {
                return true;
            }
        }

        return false;
    }

    /** Whether a worker that was told to end has not said yet that it accepts no more work. */
    private function mayAccept(): bool
    {
        foreach ($this->processes as $process) {
            if ($process->state === State::Draining && $process->running === null) {
                return true;
            }
        }

        return false;
    }

    /** A reload is finished when every request is answered by new code: until a replaced worker has said so, it may still accept connections. */
    private function finishReload(float $now): void
    {
        $since = $this->reloadSince;
        if ($since !== null && $this->toReplace === [] && !$this->isReplacing() && !$this->mayAccept() && $this->ready() === \count($this->slots)) {
            $this->closeUnusedListeners();
            $this->log->notice('reload finished after {seconds} s', ['seconds' => \round($now - $since, 3)]);
            $this->reloadSince = null;
            WorkerMetrics::reload('finished');
        }
    }

    /** New code may listen on other addresses. Replaced workers that still drain accept nothing more. */
    private function closeUnusedListeners(): void
    {
        $this->native->closeListenersExceptOf(\array_map(static fn(Slot $slot): int => (int) $slot->current?->pid, \array_values($this->slots)));
    }

    /**
     * New code that does not start must not replace old code that runs.
     *
     * @param array<string, int> $successor the successor in the log: its worker, and its pid if it has had one
     */
    private function abandonReload(Slot $slot, array $successor, float $now): void
    {
        $this->toReplace = [];
        $delay = \round($slot->successorFailed($now), 2);
        $isReload = $this->reloadSince !== null;
        $this->log->error(
            (isset($successor['pid']) ? Process::NAME : 'worker {worker}') . ' did not start; the running workers stay'
                . ($isReload ? '' : '; not recycled again within {not_again_within} s'),
            $successor + ($isReload ? [] : ['not_again_within' => $delay]),
        );
        if ($isReload) {
            $this->reloadSince = null;
            WorkerMetrics::reload('abandoned');
        }
    }

    private function limitReached(Process $process, int $memory, float $now): ?string
    {
        $options = $this->options;
        $requests = $options->maxRequests === null ? null : $options->maxRequests - (int) ($options->maxRequests * self::JITTER * ($process->pid % 100) / 100);

        return match (true) {
            $requests !== null && $process->done >= $requests => "$process->done requests done, --max-requests is $options->maxRequests",
            $options->maxMemory !== null && $memory >= $options->maxMemory && $now >= $process->slot->recycleAt => "$memory bytes of memory, --max-memory is $options->maxMemory",
            $process->maxAge !== null && $now - $process->startedAt >= $process->maxAge => \sprintf('%.1f s old, --max-age is %s', $now - $process->startedAt, $options->maxAge),
            default => null,
        };
    }

    private function report(Process $process, ?int $code, ?int $signal, float $now): void
    {
        $isForeign = $signal === Signal::SIGKILL->value && $process->reason === null;
        $lived = \sprintf('%.2f', $now - $process->startedAt);
        $why = $process->reason ?? ($code === 0 ? 'on its own' : 'crash');
        $clean = $process->reason !== null && !$process->isFaulty && self::hasStopped($code, $signal);
        $returned = $process->reason === null && $code === 0 && $process->readyAt === null;
        $this->log->log(
            $clean ? 'info' : 'error',
            Process::NAME . ($signal === null ? ' ended with exit code {exit_code}' : ' ended with {signal}')
                . ($isForeign ? ' (not sent by this supervisor; possibly the kernel ran out of memory)' : '') . ' after {lived} s: {why}',
            $process->context() + [
                'lived' => $lived,
                'why' => $returned ? \rtrim("$why, before it was ready. {$this->options->advice}") : $why,
                'exit_code' => $code,
                'signal' => $signal === null ? null : Signal::name($signal),
            ],
        );
        WorkerMetrics::ended(\explode(':', $why)[0]);
    }
}
