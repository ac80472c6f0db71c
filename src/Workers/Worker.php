<?php

declare(strict_types=1);

namespace Weft\Workers;

use Weft\Native;
use Weft\Runtime\TaskInfo;

/** This process as one of several that `weft run` has started. Without a supervisor its methods do nothing. */
final class Worker
{
    /** Seconds between two reports of a worker that drains. */
    private const REPORT_EVERY = 1.0;
    private const SIGINT = 2;
    private const SIGTERM = 15;

    /** Which one of the workers this is, from 1; 1 without a supervisor. */
    public static function index(): int
    {
        return \max(1, (int) \getenv('WEFT_WORKER'));
    }

    /** How many workers there are; 1 without a supervisor. */
    public static function count(): int
    {
        return \max(1, (int) \getenv('WEFT_WORKERS'));
    }

    public static function isSupervised(): bool
    {
        return Native\supervised();
    }

    /**
     * Says that this worker is ready, waits until it is told to stop, and begins to drain. What is still running then is
     * the caller's to finish; a second signal of the same kind ends the process. To be called inside `Weft\run()`.
     *
     * @return int the signal: SIGTERM from the supervisor, SIGINT from a terminal where there is none
     */
    public static function untilStopped(): int
    {
        $signal = \Weft\async(static fn(): int => \Weft\signal(self::SIGTERM, self::SIGINT));
        // One turn of the loop, and the handlers are in place: from now on a signal does not end the process.
        \Weft\delay(0.0);
        self::ready();
        $signal = $signal->await();
        self::draining();

        return $signal;
    }

    /**
     * Says that everything is open: from now on this worker counts, and the one it replaces may go. It has to wait for
     * SIGTERM by then, as {@see self::untilStopped()} does: the signal may come at once.
     */
    public static function ready(): void
    {
        self::tell(['type' => 'ready']);
    }

    /**
     * Says which addresses are open; the supervisor logs each once. Where there is none, nothing happens.
     *
     * @param list<string> $addresses
     */
    public static function listening(array $addresses): void
    {
        self::tell(['type' => 'listening', 'addresses' => $addresses]);
    }

    /** Counts finished units of work, such as requests, for `--max-requests`. */
    public static function workDone(int $units = 1): void
    {
        Native\workDone($units);
    }

    /**
     * Says that this worker takes no new work, and tells the supervisor every second what it still waits for. To be called
     * inside `Weft\run()`, when SIGTERM has come.
     */
    public static function draining(): void
    {
        if (!Native\supervised()) {
            return;
        }
        $own = \Weft\current()?->id();
        \Weft\detach(static function () use ($own): void {
            $ignored = [$own, \Weft\current()?->id()];
            while (true) {
                $running = \array_filter(\Weft\tasks(), static fn(TaskInfo $task): bool => !\in_array($task->id, $ignored, true));
                self::tell(['type' => 'draining', 'tasks' => \array_map(\strval(...), \array_slice(\array_values($running), 0, 20))]);
                \Weft\delay(self::REPORT_EVERY);
            }
        });
    }

    /** @param array<string, mixed> $message */
    private static function tell(array $message): void
    {
        Native\tellSupervisor(\json_encode($message, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE));
    }
}
