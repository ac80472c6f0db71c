<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Internal\ErrorLog;

/**
 * PHP warnings of the runtime, in places where no code of the application could catch an exception: background tasks, the event loop, destructors.
 *
 * Error handlers of frameworks turn warnings into exceptions. There one would end the run, for a failure that ends nothing.
 *
 * @internal
 */
final class Warnings
{
    /** Triggers an `E_USER_WARNING`. If the error handler of the application throws, PHP's own log receives the message and what was thrown. */
    public static function trigger(string $message): void
    {
        try {
            \trigger_error($message, \E_USER_WARNING);
        } catch (\Throwable $thrown) {
            if (Scheduler::isCancelledBy($thrown)) {
                throw $thrown;
            }
            $text = $thrown->getMessage() === $message ? '' : ": {$thrown->getMessage()}";
            ErrorLog::write('the error handler threw ', \get_debug_type($thrown), $text, '; the warning was: ', $message);
        }
    }
}
