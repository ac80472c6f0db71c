<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Psr\Log\LoggerInterface;
use Weft\Native;
use Weft\Workers\SupervisorException;

/**
 * The supervisor process. It runs neither an event loop of Weft nor application code.
 *
 * @internal
 */
final class Supervisor
{
    /** Seconds between two checks of memory, age and request limits. */
    private const CHECK_INTERVAL = 0.5;
    /** Seconds without further changes before a reload starts: editors write in several steps. */
    private const DEBOUNCE = 0.02;
    /** Minimum seconds between two warnings of the metrics endpoint. */
    private const WARNING_INTERVAL = 60.0;

    private readonly WorkerGroup $group;
    private readonly Native\Supervisor $native;
    private readonly SystemdNotifier $notifier;
    private readonly SignalEcho $echo;
    private ?SourceFiles $sources = null;
    /** Whether standard input was a terminal at the start. */
    private readonly bool $hasTerminal;
    private float $checkedAt = 0.0;
    private float $warnAgainAt = 0.0;
    private ?float $changedAt = null;
    private string $changedFile = '';
    private bool $announced = false;
    private bool $reloading = false;
    private int $exitCode = 0;

    public function __construct(private readonly RunOptions $options, private readonly LoggerInterface $log)
    {
        $this->native = new Native\Supervisor($options->workers);
        $this->hasTerminal = self::isTerminal();
        $this->notifier = new SystemdNotifier();
        $this->echo = new SignalEcho();
        $this->group = new WorkerGroup($options, $this->native, $log);
    }

    /**
     * Runs until a signal stops it, or until it gives up because no worker stays alive.
     *
     * @return int 0 after an orderly end, 1 otherwise
     *
     * @throws SupervisorException
     */
    public function run(): int
    {
        $pidFile = $this->options->pidFile === null ? null : PidFile::take($this->options->pidFile);
        try {
            $this->open();
            $this->loop();
        } finally {
            $this->group->kill('the supervisor ends');
            $pidFile?->remove();
        }
        if ($this->group->stopFailed) {
            $this->exitCode = 1;
        }
        $this->log->notice('all workers have ended', ['exit_code' => $this->exitCode]);

        return $this->exitCode;
    }

    private function open(): void
    {
        if ($this->options->watch !== []) {
            $this->sources = new SourceFiles($this->native, $this->log, $this->options->watch);
        }
        $this->log->notice('supervisor {pid} starts {command}; workers: {workers}', [
            'pid' => \getmypid(),
            'workers' => $this->options->workers,
            'command' => \implode(' ', $this->options->command),
        ]);
        if ($this->options->metrics !== null) {
            $this->log->notice('metrics, /ready and /live on http://{address}/metrics', ['address' => $this->native->serve($this->options->metrics)]);
        }
    }

    private function loop(): void
    {
        while (true) {
            $now = self::now();
            $this->reloadAfterChange($now);
            $this->group->tick($now);
            $this->check($now);
            if ($this->group->stopping && $this->group->processes === []) {
                return;
            }
            foreach ($this->native->wait($this->pause($now)) as $event) {
                $this->handle($event, self::now());
            }
        }
    }

    private function pause(float $now): float
    {
        $pause = \min($this->group->secondsUntilDue($now), self::CHECK_INTERVAL);

        return $this->changedAt === null ? $pause : \min($pause, \max(0.0, $this->changedAt + self::DEBOUNCE - $now));
    }

    /** Updates metrics and systemd in every turn of the loop, and checks limits at intervals. */
    private function check(float $now): void
    {
        $ready = $this->group->ready();
        $this->warn($this->native->update($this->group->healthy(), $this->options->workers, $this->group->stopping, $this->group->failing()), $now);
        WorkerMetrics::workers($this->group->states());
        $this->notifier->keepAlive($now);
        $this->announce($ready);
        if (!$this->group->stopping && $this->sources === null && $this->group->hasGivenUp()) {
            $this->giveUp("every worker has failed {$this->options->maxCrashes} times in a row and none is ready; fix the application, then start it again", $now);
        }
        if ($now - $this->checkedAt >= self::CHECK_INTERVAL) {
            $this->checkedAt = $now;
            $this->group->recycle($now);
            $this->notifier->status("$ready of {$this->options->workers} workers are ready");
        }
    }

    /** Logs at most once a minute: a lack of descriptors lasts, and every failure to accept would log a line. */
    private function warn(?string $reason, float $now): void
    {
        if ($reason !== null && $now >= $this->warnAgainAt) {
            $this->warnAgainAt = $now + self::WARNING_INTERVAL;
            $this->log->warning('the metrics endpoint cannot accept connections: {reason}', ['reason' => $reason]);
        }
    }

    private function announce(int $ready): void
    {
        if (!$this->announced && $ready === $this->options->workers) {
            $this->announced = true;
            $this->notifier->ready();
        }
        $reloading = $this->group->reloadSince !== null;
        if ($this->reloading && !$reloading && $this->announced) {
            $this->notifier->ready();
        }
        $this->reloading = $reloading;
    }

    private function giveUp(string $reason, float $now): void
    {
        $this->log->critical('giving up: {reason}', ['reason' => $reason]);
        $this->exitCode = 1;
        $this->group->stop('giving up', $now);
    }

    /** A worker that cannot listen on its address ends by itself, after it has said so in its own words. */
    private function handleExit(int $pid, ?int $code, ?int $signal, float $now): void
    {
        // Once a worker was ready, another program may have the address for a moment only, or one worker of several is concerned.
        // While sources are watched, the address may be what is edited next.
        $refusal = $this->group->wasReady || $this->sources !== null ? null : ($this->group->processes[$pid] ?? null)?->refusal;
        $this->group->handleExit($pid, $code, $signal, $now, isStartedAgain: $refusal === null);
        if ($refusal !== null && !$this->group->stopping) {
            $this->giveUp($refusal, $now);
        }
    }

    /** @param array{'signal', int}|array{'exited', int, ?int, ?int}|array{'message', int, string}|array{'changed', string}|array{'changes lost'} $event as {@see Native\Supervisor::wait()} returns it */
    private function handle(array $event, float $now): void
    {
        if ($event[0] === 'changes lost') {
            $this->handleLostChanges($now);

            return;
        }
        match ($event[0]) {
            'signal' => $this->handleSignal(Signal::from((int) $event[1]), $now),
            'exited' => $this->handleExit($event[1], $event[2], $event[3], $now),
            'message' => $this->handleMessage($event[1], $event[2], $now),
            'changed' => $this->handleChange($event[1], $now),
        };
    }

    private function handleSignal(Signal $signal, float $now): void
    {
        if ($signal === Signal::SIGUSR1) {
            $this->logWorkers($now);
        } elseif ($signal === Signal::SIGUSR2 || $signal === Signal::SIGHUP && !$this->hasLostTerminal()) {
            $this->reload($signal->name, $now);
        } elseif ($signal === Signal::SIGHUP) {
            $this->log->notice('SIGHUP, the terminal is closed: stopping gracefully');
            $this->stop($signal, $now);
        } elseif ($this->echo->hears($signal, $now)) {
            return;
        } elseif ($this->group->stopping || $signal === Signal::SIGQUIT) {
            $this->log->warning('{signal}: killing the workers that still run', ['signal' => $signal->name]);
            $this->exitCode = 1;
            $this->group->stop($signal->name, $now);
            $this->group->kill($signal->name);
        } else {
            $this->log->notice('{signal}: stopping gracefully; a second signal kills the workers', ['signal' => $signal->name]);
            $this->stop($signal, $now);
        }
    }

    private function stop(Signal $signal, float $now): void
    {
        $this->notifier->stopping();
        $this->group->stop($signal->name, $now);
    }

    /** A terminal that is closed sends SIGHUP to the programs in its foreground, which does not ask for a reload. */
    private function hasLostTerminal(): bool
    {
        return $this->hasTerminal && !self::isTerminal();
    }

    private function reload(string $reason, float $now): void
    {
        if (!$this->group->stopping) {
            $this->notifier->reloading();
            $this->group->reload($reason, $now);
        }
    }

    private function handleMessage(int $pid, string $text, float $now): void
    {
        $process = $this->group->processes[$pid] ?? null;
        /** @var array{type?: string, addresses: list<string>, reason: string, done: int, tasks: list<string>, failing: list<string>, seconds: float, trace: list<string>}|null $message each type has its own */
        $message = \json_decode($text, true);
        if ($process === null || !\is_array($message)) {
            return;
        }
        match ($message['type'] ?? null) {
            'ready' => $this->group->markReady($process, $now),
            'listening' => $this->group->reportListening((array) $message['addresses']),
            'cannot-listen' => $process->refusal = (string) $message['reason'],
            'status' => $process->done = (int) $message['done'],
            'blocked' => $this->group->reportBlocked($process, BlockedLoop::of($message)),
            'hang' => $this->group->endHung($process, BlockedLoop::of($message), $now),
            'health' => $process->failing = \array_map(\strval(...), $message['failing']),
            'draining' => $this->group->reportDraining($process, (array) $message['tasks'], $now),
            default => $this->log->warning(Process::NAME . " sent an unknown message", $process->context() + ['text' => \substr($text, 0, 200)]),
        };
    }

    private function handleChange(string $path, float $now): void
    {
        if ($this->sources?->contains($path) === true) {
            $this->changedAt = $now;
            $this->changedFile = $path;
        }
    }

    private function handleLostChanges(float $now): void
    {
        if ($this->sources !== null) {
            $this->sources->rescan();
            $this->changedAt = $now;
            $this->changedFile = 'more files than fs.inotify.max_queued_events';
        }
    }

    private function reloadAfterChange(float $now): void
    {
        if ($this->changedAt !== null && $now - $this->changedAt >= self::DEBOUNCE) {
            $this->changedAt = null;
            $this->reload("changed: $this->changedFile", $now);
        }
    }

    private function logWorkers(float $now): void
    {
        foreach ($this->group->processes as $process) {
            $this->log->notice(Process::NAME . ": {state}, {age} s old, {done} done, {memory} bytes", $process->context() + [
                'state' => $process->state->value,
                'age' => \round($now - $process->startedAt, 1),
                'done' => $process->done,
                'memory' => $process->memory(),
            ]);
        }
    }

    /** Whether standard input is a terminal that is still open. */
    private static function isTerminal(): bool
    {
        return \defined('STDIN') && \stream_isatty(\STDIN);
    }

    private static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
