<?php

declare(strict_types=1);

namespace Weft\Workers;

use Weft\Native;
use Weft\Runtime\Internal\Signals;
use Weft\Runtime\TaskInfo;

/** This process as one of the workers that `weft run` has started. Without a supervisor the methods do nothing. */
final class Worker
{
    /** Seconds between two reports of a draining worker. */
    private const REPORT_EVERY = 1.0;
    /** Bytes of a task in a report: 20 of them, each byte escaped as six, fit a message of 128 KiB. */
    private const MAX_TASK_BYTES = 1000;
    private const SIGINT = 2;
    private const SIGTERM = 15;

    /** The number of this worker, counted from 1; 1 without a supervisor. */
    public static function index(): int
    {
        return \max(1, (int) \getenv('WEFT_WORKER'));
    }

    /** The number of workers; 1 without a supervisor. */
    public static function count(): int
    {
        return \max(1, (int) \getenv('WEFT_WORKERS'));
    }

    /** Seconds from the signal to stop until the supervisor kills this worker, `--drain-timeout`; null without a supervisor. */
    public static function drainTimeout(): ?float
    {
        $seconds = \getenv('WEFT_DRAIN_TIMEOUT');

        return self::isSupervised() && \is_numeric($seconds) ? (float) $seconds : null;
    }

    public static function isSupervised(): bool
    {
        return Native\supervised();
    }

    /**
     * Reports that this worker is ready, waits for the signal to stop, and starts to drain. The caller finishes what still runs then;
     * a second signal of the same kind ends a process without supervisor. Call it inside `Weft\run()`.
     *
     * @return int the signal: SIGTERM from the supervisor, SIGINT from a terminal where there is none
     */
    public static function untilStopped(): int
    {
        $signals = new Signals(self::SIGTERM, self::SIGINT);
        try {
            self::ready();
            $signal = (int) $signals->wait();
        } finally {
            $signals->close();
        }
        self::draining();

        return $signal;
    }

    /**
     * Reports that everything is open: this worker counts as ready, and the worker it replaces is stopped. It must already listen for
     * SIGTERM, as {@see self::untilStopped()} does: the signal may arrive immediately.
     */
    public static function ready(): void
    {
        self::send(['type' => 'ready']);
    }

    /**
     * Reports the addresses that this worker listens on; the supervisor logs each of them once.
     *
     * @param list<string> $addresses
     */
    public static function listening(array $addresses): void
    {
        self::send(['type' => 'listening', 'addresses' => $addresses]);
    }

    /**
     * Reports that an address cannot be listened on. If the worker ends then and none has ever been ready, the supervisor
     * gives up instead of starting it again.
     *
     * @param string $reason names the address and the error
     */
    public static function cannotListen(string $reason): void
    {
        self::send(['type' => 'cannot-listen', 'reason' => $reason]);
    }

    /**
     * Reports the health checks of the application that fail: while there is one, this worker does not count as ready at `/ready`.
     *
     * @param list<string> $failing names
     */
    public static function health(array $failing): void
    {
        self::send(['type' => 'health', 'failing' => $failing]);
    }

    /** Counts finished units of work, such as requests, for `--max-requests`. */
    public static function workDone(int $units = 1): void
    {
        Native\workDone($units);
    }

    /**
     * Reports that this worker accepts no new work, and then every second which tasks still run. Call it inside `Weft\run()` after
     * SIGTERM.
     */
    public static function draining(): void
    {
        if (!Native\supervised()) {
            return;
        }
        $own = \Weft\current()?->id();
        \Weft\detach(static function () use ($own): void {
            $ignored = [$own, \Weft\current()?->id()];
            // After one turn of the loop, servers and consumers that were told to stop accept nothing more.
            \Weft\delay(0.001);
            while (true) {
                $running = \array_filter(\Weft\tasks(), static fn(TaskInfo $task): bool => !\in_array($task->id, $ignored, true));
                self::send(['type' => 'draining', 'tasks' => \array_map(self::summary(...), \array_slice(\array_values($running), 0, 20))]);
                \Weft\delay(self::REPORT_EVERY);
            }
        });
    }

    private static function summary(TaskInfo $task): string
    {
        $text = (string) $task;

        return \strlen($text) <= self::MAX_TASK_BYTES ? $text : \substr($text, 0, self::MAX_TASK_BYTES) . '…';
    }

    /** @param array<string, mixed> $message */
    private static function send(array $message): void
    {
        Native\tellSupervisor(\json_encode($message, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE));
    }
}
