<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * Starts workers, holds their listening sockets and hears of what happens to them. Needs no event loop, and starts none.
 *
 * While one exists SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1 and SIGUSR2 are blocked and arrive as events.
 */
final class Supervisor
{
    /**
     * @param int $workers how many there are, 1 at least: a TCP port has a listening socket for each
     *
     * @throws \Weft\Workers\SupervisorException
     */
    public function __construct(int $workers)
    {
    }

    /**
     * Starts a process with a socket to this one and returns its pid. It gets a SIGTERM when this process dies.
     *
     * @param int $index whose place it takes, from 1; its label `worker` in metrics. Its listening sockets are those of its
     *     predecessors at that place
     * @param list<string> $command program and arguments; no shell is involved
     * @param array<string, string> $environment what it gets in addition to this process's environment
     *
     * @throws \Weft\Workers\SupervisorException
     */
    public function spawn(int $index, array $command, array $environment): int
    {
    }

    /**
     * Waits until something happens, or `$timeout` seconds. What a worker said comes before its end.
     *
     * @return list<array{'signal', int}|array{'exited', int, ?int, ?int}|array{'message', int, string}|array{'changed', string}|array{'changes lost'}>
     *     a signal; the pid that ended with its exit code or signal; the pid and the JSON object it said; a path; more changes of files than could be queued
     *
     * @throws \Weft\Workers\SupervisorException
     */
    public function wait(float $timeout): mixed
    {
    }

    /** Sends a signal. False where there is no such process. */
    public function kill(int $pid, int $signal): bool
    {
    }

    /**
     * Watches the files of a directory, without its subdirectories.
     *
     * @throws \Weft\Workers\SupervisorException
     */
    public function watch(string $directory): void
    {
    }

    /** Lets connections queue for a worker that is ready, before it accepts from its sockets itself. */
    public function startListening(int $pid): void
    {
    }

    /**
     * Closes the listening sockets that none of these workers has asked for.
     *
     * @param list<int> $pids
     */
    public function closeListenersExceptOf(array $pids): void
    {
    }

    /**
     * Serves `/metrics`, `/ready` and `/live` over HTTP on a thread of its own, and returns the address it listens on.
     *
     * @param string $address `127.0.0.1:9464`; port 0 chooses one
     *
     * @throws \Weft\Workers\SupervisorException
     */
    public function serve(string $address): string
    {
    }

    /**
     * Tells that endpoint how many workers are ready, of how many. To be called at least every ten seconds.
     *
     * @param list<string> $failing the health checks that fail; `/ready` lists them
     *
     * @return string|null why it could not accept connections since the last call, for the log
     */
    public function update(int $ready, int $wanted, bool $stopping, array $failing): ?string
    {
    }
}

/** Whether a supervisor has started this process. */
function supervised(): bool
{
}

/**
 * Sends a JSON object to the supervisor; without one nothing happens.
 *
 * @throws \Weft\Workers\SupervisorException the object is longer than 128 KiB
 */
function tellSupervisor(string $message): void
{
}

/** Counts finished units of work, such as requests: `weft run --max-requests` recycles workers by it. */
function workDone(int $units): void
{
}
