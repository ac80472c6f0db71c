<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Psr\Log\LoggerInterface;
use Weft\Native;

/**
 * The output of tasks. Each task has its own output buffers. Output outside of them goes to the task's group if that is an
 * {@see OutputListener}, and to stdout otherwise.
 *
 * @internal
 */
final class Output
{
    /** The number of buffers that tasks share; null while output is not watched. */
    private static ?int $base = null;

    /**
     * Starts to watch output. Call it on the loop, outside of tasks: from here on a buffer opened in a task belongs to that task.
     *
     * Those that tasks have opened before, above `$level`, are closed. They would belong to all tasks, collect what each of them prints until the process ends,
     * and be out of the reach of the task that has opened them.
     *
     * @param int $level of the buffers that the program had opened before it ran the loop; they stay
     */
    public static function watch(int $level, LoggerInterface $logger): void
    {
        if (self::$base === null) {
            self::closeAbove($level, $logger);
            Native\receiveOutput(self::heard(...));
            self::$base = \ob_get_level();
            Native\separateOutput(self::$base);
        }
    }

    public static function restore(): void
    {
        if (self::$base !== null) {
            Native\separateOutput(-1);
            while (\ob_get_level() >= self::$base) {
                \ob_end_flush();
            }
            self::$base = null;
        }
    }

    private static function closeAbove(int $level, LoggerInterface $logger): void
    {
        while (($open = \ob_get_level()) > $level) {
            $buffer = \ob_get_status();
            $logger->warning(
                'A server starts while a task has an output buffer open ({buffer}), which all requests would share: it is closed, and its {bytes} bytes are printed. '
                . 'Close a buffer before the server starts, or open it in the request that uses it',
                ['buffer' => $buffer['name'] ?? '', 'bytes' => $buffer['buffer_used'] ?? 0],
            );
            try {
                self::close($open - 1, isFlushed: true);
            } catch (\Throwable $thrown) {
                $logger->warning('The callback of the output buffer has failed: {error}', ['error' => $thrown->getMessage(), 'exception' => $thrown]);
            }
            if (\ob_get_level() >= $open) {
                break;
            }
        }
    }

    /**
     * Closes the buffers that the running task has left open and returns their contents, outermost first.
     *
     * @param \Closure(\Throwable): void $report receives what a callback of theirs throws
     */
    public static function closeLeftOpen(\Closure $report): string
    {
        $text = '';
        // A task does not see the buffers that all tasks share.
        while (self::$base !== null && ($level = \ob_get_level()) > 0) {
            $text = (string) \ob_get_contents() . $text;
            try {
                self::close($level - 1);
            } catch (\Throwable $thrown) {
                $report($thrown);
            }
            if (\ob_get_level() === $level) {
                break;
            }
        }

        return $text;
    }

    /** The fiber of a task that has ended runs others: they find neither its buffers nor hidden ones. */
    public static function endTask(): void
    {
        if (self::$base === null) {
            return;
        }
        try {
            self::close(0);
        } catch (\Throwable) {
            // Of a callback of a buffer, whose task and output are gone.
        }
    }

    /** Discards or prints the buffers above the level. Realms are missing where other extensions have taken the room in fibers. */
    private static function close(int $level, bool $isFlushed = false): void
    {
        if (\class_exists(Native\Realm::class, false)) {
            Native\Realm::closeBuffers($level, $isFlushed);

            return;
        }
        while (\ob_get_level() > $level && ($isFlushed ? @\ob_end_flush() : @\ob_end_clean())) {
        }
    }

    private static function heard(string $text): string
    {
        $task = Scheduler::$current?->running;
        while ($task !== null && $text !== '') {
            if ($task->group instanceof OutputListener) {
                $task->group->printed($task, $text);

                return '';
            }
            $task = $task->owner();
        }

        return $text;
    }
}
