<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Psr\Log\LoggerInterface;
use Weft\Native;
use Weft\Workers\SupervisorException;

/**
 * The process that watches over workers. It has no event loop of Weft's and no code of the application in it.
 *
 * @internal
 */
final class Supervisor
{
    /** Seconds between two looks at limits. */
    private const LOOK_EVERY = 0.5;
    /** Seconds without another change before new workers are started: editors write in several steps. */
    private const SETTLE = 0.02;
    /** Seconds between two warnings of the metrics endpoint. */
    private const WARN_EVERY = 60.0;

    private readonly Fleet $fleet;
    private readonly Native\Supervisor $native;
    private readonly Notifier $notifier;
    private ?Sources $sources = null;
    private float $lookedAt = 0.0;
    private float $warnAgainAt = 0.0;
    private ?float $changedAt = null;
    private string $changedFile = '';
    private bool $announced = false;
    private bool $reloading = false;
    private int $exitCode = 0;

    public function __construct(private readonly Plan $plan, private readonly LoggerInterface $log)
    {
        $this->native = new Native\Supervisor($plan->workers);
        $this->notifier = new Notifier();
        $this->fleet = new Fleet($plan, $this->native, $log);
    }

    /**
     * Runs until a signal ends it, or the application cannot be kept running.
     *
     * @return int 0 after an orderly end, 1 otherwise
     *
     * @throws SupervisorException
     */
    public function run(): int
    {
        $pidFile = $this->plan->pidFile === null ? null : PidFile::take($this->plan->pidFile);
        try {
            $this->open();
            $this->loop();
        } finally {
            $this->fleet->kill('the supervisor ends');
            $pidFile?->remove();
        }
        $this->log->notice('all workers have ended', ['exit_code' => $this->exitCode]);

        return $this->exitCode;
    }

    private function open(): void
    {
        if ($this->plan->watch !== []) {
            $this->sources = new Sources($this->native, $this->plan->watch);
        }
        $this->log->notice('supervisor {pid} starts {workers} workers of {command}', [
            'pid' => \getmypid(),
            'workers' => $this->plan->workers,
            'command' => \implode(' ', $this->plan->command),
        ]);
        if ($this->plan->metrics !== null) {
            $this->log->notice('metrics, /ready and /live on http://{address}/metrics', ['address' => $this->native->serve($this->plan->metrics)]);
        }
    }

    private function loop(): void
    {
        while (true) {
            $now = self::now();
            $this->applyChange($now);
            $this->fleet->turn($now);
            $this->look($now);
            if ($this->fleet->stopping && $this->fleet->processes === []) {
                return;
            }
            foreach ($this->native->wait($this->pause($now)) as $event) {
                $this->handle($event, self::now());
            }
        }
    }

    private function pause(float $now): float
    {
        $pause = \min($this->fleet->due($now), self::LOOK_EVERY);

        return $this->changedAt === null ? $pause : \min($pause, \max(0.0, $this->changedAt + self::SETTLE - $now));
    }

    /** What is to be done with every turn, and what now and then. */
    private function look(float $now): void
    {
        $ready = $this->fleet->ready();
        $this->warn($this->native->update($ready, $this->plan->workers, $this->fleet->stopping), $now);
        Numbers::workers($this->fleet->states());
        $this->notifier->alive($now);
        $this->announce($ready);
        if (!$this->fleet->stopping && $this->sources === null && $this->fleet->isHopeless()) {
            $this->giveUp($now);
        }
        if ($now - $this->lookedAt >= self::LOOK_EVERY) {
            $this->lookedAt = $now;
            $this->fleet->recycle($now);
            $this->notifier->status("$ready of {$this->plan->workers} workers are ready");
        }
    }

    /** Logs at most once a minute: a lack of descriptors lasts, and each failure to accept would be a line. */
    private function warn(?string $reason, float $now): void
    {
        if ($reason !== null && $now >= $this->warnAgainAt) {
            $this->warnAgainAt = $now + self::WARN_EVERY;
            $this->log->warning('the metrics endpoint cannot accept connections: {reason}', ['reason' => $reason]);
        }
    }

    private function announce(int $ready): void
    {
        if (!$this->announced && $ready === $this->plan->workers) {
            $this->announced = true;
            $this->notifier->ready();
        }
        $reloading = $this->fleet->reloadSince !== null;
        if ($this->reloading && !$reloading && $this->announced) {
            $this->notifier->ready();
        }
        $this->reloading = $reloading;
    }

    private function giveUp(float $now): void
    {
        $this->log->critical(
            'giving up: every worker has failed {failures} times in a row and none is ready. Repair the application, then start again.',
            ['failures' => $this->plan->maxCrashes],
        );
        $this->exitCode = 1;
        $this->fleet->stop('giving up', $now);
    }

    /** @param array{'signal', int}|array{'exited', int, ?int, ?int}|array{'message', int, string}|array{'changed', string} $event as {@see Native\Supervisor::wait()} returns it */
    private function handle(array $event, float $now): void
    {
        match ($event[0]) {
            'signal' => $this->signalled(Signal::from((int) $event[1]), $now),
            'exited' => $this->fleet->ended($event[1], $event[2], $event[3], $now),
            'message' => $this->heard($event[1], $event[2], $now),
            'changed' => $this->changed($event[1], $now),
        };
    }

    private function signalled(Signal $signal, float $now): void
    {
        if ($signal === Signal::SIGUSR1) {
            $this->list($now);
        } elseif ($signal === Signal::SIGHUP) {
            $this->reload('SIGHUP', $now);
        } elseif ($this->fleet->stopping || $signal === Signal::SIGQUIT) {
            $this->log->warning('{signal}: workers that still run are killed', ['signal' => $signal->name]);
            $this->exitCode = 1;
            $this->fleet->stop($signal->name, $now);
            $this->fleet->kill($signal->name);
        } else {
            $this->log->notice('{signal}: stopping, workers finish what they do; a second signal kills them', ['signal' => $signal->name]);
            $this->notifier->stopping();
            $this->fleet->stop($signal->name, $now);
        }
    }

    private function reload(string $reason, float $now): void
    {
        if (!$this->fleet->stopping) {
            $this->notifier->reloading();
            $this->fleet->reload($reason, $now);
        }
    }

    private function heard(int $pid, string $text, float $now): void
    {
        $process = $this->fleet->processes[$pid] ?? null;
        /** @var array{type?: string, addresses: list<string>, done: int, tasks: list<string>, seconds: float, trace: list<string>}|null $message each type has its own */
        $message = \json_decode($text, true);
        if ($process === null || !\is_array($message)) {
            return;
        }
        match ($message['type'] ?? null) {
            'ready' => $this->fleet->isReady($process, $now),
            'listening' => $this->fleet->listens((array) $message['addresses']),
            'status' => $process->done = (int) $message['done'],
            'blocked' => $this->fleet->isBlocked($process, Standstill::of($message)),
            'hang' => $this->fleet->hangs($process, Standstill::of($message), $now),
            'draining' => $this->fleet->drains($process, (array) $message['tasks']),
            default => $this->log->warning(Process::NAME . " said something unknown", $process->context() + ['text' => \substr($text, 0, 200)]),
        };
    }

    private function changed(string $path, float $now): void
    {
        if ($this->sources?->concerns($path) === true) {
            $this->changedAt = $now;
            $this->changedFile = $path;
        }
    }

    private function applyChange(float $now): void
    {
        if ($this->changedAt !== null && $now - $this->changedAt >= self::SETTLE) {
            $this->changedAt = null;
            $this->reload("$this->changedFile has changed", $now);
        }
    }

    private function list(float $now): void
    {
        foreach ($this->fleet->processes as $process) {
            $this->log->notice(Process::NAME . ": {state}, {age} s old, {done} done, {memory} bytes", $process->context() + [
                'state' => $process->state->value,
                'age' => \round($now - $process->startedAt, 1),
                'done' => $process->done,
                'memory' => $process->memory(),
            ]);
        }
    }

    private static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
