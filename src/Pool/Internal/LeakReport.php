<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Warnings;

/**
 * Reports a lease that lasts longer than the leak threshold: to the hook of the application, or as a warning.
 *
 * @internal
 */
final class LeakReport
{
    /** Neither the hook nor an error handler ends the pool's work. */
    public static function of(Holder $holder, Hooks $hooks): void
    {
        if ($hooks->leaked === null) {
            Warnings::trigger((string) $holder);

            return;
        }
        try {
            ($hooks->leaked)($holder);
        } catch (\Throwable $thrown) {
            if (Scheduler::isCancelledBy($thrown)) {
                throw $thrown;
            }
            Warnings::trigger(\sprintf('pool "%s": the hook "leaked" threw %s: %s. The leak was: %s', $holder->pool, $thrown::class, $thrown->getMessage(), $holder));
        }
    }
}
