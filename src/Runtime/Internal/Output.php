<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

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

    /** Starts to watch output. Call it on the loop, outside of tasks: a buffer opened in a task belongs to that task. */
    public static function watch(): void
    {
        if (self::$base === null) {
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

    /** Closes the buffers that the running task has left open and returns their contents, outermost first. */
    public static function closeLeftOpen(): string
    {
        $text = '';
        // A task does not see the buffers that all tasks share.
        while (self::$base !== null && ($level = \ob_get_level()) > 0) {
            $text = (string) \ob_get_contents() . $text;
            self::close($level - 1);
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

    /** Discards the buffers above the level. Realms are missing where other extensions have taken the room in fibers. */
    private static function close(int $level): void
    {
        if (\class_exists(Native\Realm::class, false)) {
            Native\Realm::closeBuffers($level, false);

            return;
        }
        while (\ob_get_level() > $level && @\ob_end_clean()) {
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
