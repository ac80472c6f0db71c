<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Internal\Printable;

/**
 * A warning about what no caller is there to receive, such as the failure of a detached task.
 *
 * @internal
 */
final class Warning
{
    /** Bytes written to PHP's own log at most. */
    private const MAX_BYTES = 8_192;

    /**
     * An error handler that turns warnings into exceptions, as those of frameworks do, would throw into the event loop and end the run: PHP's own log
     * receives the message instead.
     */
    public static function raise(string $message): void
    {
        try {
            \trigger_error($message, \E_USER_WARNING);
        } catch (\Throwable $thrown) {
            if (Scheduler::isCancelledBy($thrown)) {
                throw $thrown;
            }
            $isSame = \str_contains($thrown->getMessage(), $message);
            $text = $isSame ? $message : "$message; the error handler threw " . $thrown::class . ": {$thrown->getMessage()}";
            \error_log(Printable::line(Printable::cut($text, self::MAX_BYTES)));
        }
    }
}
