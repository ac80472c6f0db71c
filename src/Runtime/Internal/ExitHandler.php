<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * Completes or answers the requests in progress when a handler has ended the process by `exit()` or a fatal error, and names the request or the
 * message whose handler it was.
 *
 * @internal
 */
final class ExitHandler
{
    /** Seconds in which other requests may finish after an `exit()`. */
    private const DRAIN_TIMEOUT = 10.0;
    /** Seconds in which responses are sent before the process ends. */
    private const FLUSH_TIMEOUT = 1.0;
    /** Additional bytes of memory for this handler after memory has run out. */
    private const RESERVE_BYTES = 16_777_216;
    private const FATAL = \E_ERROR | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR | \E_RECOVERABLE_ERROR | \E_PARSE;

    private static bool $isPrepared = false;

    /** Installs the handler. Every application, server and consumer calls it; only the first call has an effect. */
    public static function prepare(): void
    {
        if (self::$isPrepared) {
            return;
        }
        self::$isPrepared = true;
        \register_shutdown_function(static function (): void {
            $error = \error_get_last();
            $fatal = $error !== null && ($error['type'] & self::FATAL) !== 0 ? $error : null;
            if ($fatal !== null) {
                // Before anything else: the first call of a function may need 64 KB, and memory may have run out.
                \ini_set('memory_limit', (string) (\memory_get_usage(true) + self::RESERVE_BYTES));
            }
            Scheduler::$processEnds = true;
            $scheduler = Scheduler::$current;
            $servers = \array_values(\array_filter($scheduler?->groups ?? [], static fn(Group $group): bool => $group instanceof ServerTasks));
            if ($scheduler !== null) {
                (new self($scheduler, $servers))->handle($fatal === null ? null : "{$fatal['message']} at {$fatal['file']}:{$fatal['line']}");
            }
        });
    }

    /** Names the work in the log while tasks of this loop do it. */
    public static function watch(InterruptedWork $work): void
    {
        self::prepare();
        if (Scheduler::$current !== null) {
            Scheduler::$current->interruptible[\spl_object_id($work)] = $work;
        }
    }

    public static function unwatch(InterruptedWork $work): void
    {
        if (Scheduler::$current !== null) {
            unset(Scheduler::$current->interruptible[\spl_object_id($work)]);
        }
    }

    /** @param list<ServerTasks> $servers */
    private function __construct(private readonly Scheduler $scheduler, private readonly array $servers)
    {
    }

    /** @param string|null $fatal the error that ended the process; null for an `exit()` */
    private function handle(?string $fatal): void
    {
        [$work, $name] = $this->interrupted();
        if (self::members($this->servers) === []) {
            $work === null || $work->logger()->critical('{work} {cause}: the process ends, {outcome}', [
                'work' => $name,
                'cause' => self::cause($fatal),
                'outcome' => $work->outcome(),
            ]);

            return;
        }
        $request = $this->runningRequest();
        $cause = self::cause($fatal);
        /** @var ServerTasks|null $server */
        $server = $request?->group;
        $name ??= 'Code outside of any request';
        if ($request !== null && $server !== null) {
            $server->failResponse($request, $cause);
            $name = $server->nameOf($request);
        }
        ($server->logger ?? $work?->logger() ?? $this->servers[0]->logger)->critical('{work} {cause}: the process ends, {others} other requests are {outcome}', [
            'work' => $name,
            'cause' => $cause,
            'others' => \count(self::members($this->servers)),
            'outcome' => $fatal === null ? 'finished first' : 'answered 503',
        ]);
        foreach ($this->servers as $server) {
            $server->handler->refuseMore();
        }
        if ($fatal === null) {
            $this->finishOthers();
        }
        foreach ($this->servers as $server) {
            foreach ($server->members() as $task) {
                $server->failResponse($task, null);
            }
        }
        $this->flush();
    }

    /** The request whose task, or one of its child tasks, was running. */
    private function runningRequest(): ?Coroutine
    {
        for ($task = $this->scheduler->running; $task !== null; $task = $task->owner()) {
            if ($task->group instanceof ServerTasks) {
                return $task;
            }
        }

        return null;
    }

    private static function cause(?string $fatal): string
    {
        return $fatal === null ? 'called exit()' : "failed: $fatal";
    }

    /** @return array{?InterruptedWork, ?string} the work outside of servers for which the running task worked, and its name */
    private function interrupted(): array
    {
        for ($task = $this->scheduler->running; $task !== null; $task = $task->owner()) {
            foreach ($this->scheduler->interruptible as $work) {
                $name = $work->describe($task);
                if ($name !== null) {
                    return [$work, $name];
                }
            }
        }

        return [null, null];
    }

    private function finishOthers(): void
    {
        $deadline = \hrtime(true) / 1e9 + self::DRAIN_TIMEOUT;
        $this->scheduler->goOnAfterExit(fn(): bool => self::members($this->servers) !== [] && \hrtime(true) / 1e9 < $deadline);
    }

    private function flush(): void
    {
        $deadline = \hrtime(true) / 1e9 + self::FLUSH_TIMEOUT;
        while ($this->connections() > 0 && \hrtime(true) / 1e9 < $deadline) {
            \Weft\Native\poll(0.01);
        }
    }

    private function connections(): int
    {
        return \array_sum(\array_map(static fn(ServerTasks $server): int => $server->handler->connections(), $this->servers));
    }

    /**
     * @param list<ServerTasks> $servers
     *
     * @return list<Coroutine>
     */
    private static function members(array $servers): array
    {
        return \array_merge([], ...\array_map(static fn(ServerTasks $server): array => \array_values($server->members()), $servers));
    }
}
