<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;

/**
 * What tasks print. Their own output buffers are theirs alone; what is printed outside of one goes to the group of the task,
 * where that wants to hear it, and to stdout as always where it does not.
 *
 * @internal
 */
final class Output
{
    /** Buffers that are everybody's; null while nothing is watched. */
    private static ?int $base = null;

    /** Begins to watch. To be called on the loop, outside any task: a buffer that a task opens would be that task's. */
    public static function watch(): void
    {
        if (self::$base === null) {
            \ob_start(self::heard(...), 1);
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

    /** Closes the buffers that the running task has left open, and returns what was in them, outermost first. */
    public static function closeLeftOpen(): string
    {
        $text = '';
        while (self::$base !== null && \ob_get_level() > self::$base) {
            $text = (string) \ob_get_clean() . $text;
        }

        return $text;
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
