<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Pool\Holder;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\Warning;

/**
 * Reports a lease that is held for longer than `Leases::$leakThreshold`.
 *
 * @internal
 */
final class LeakReport
{
    /** @param (\Closure(Holder): void)|null $hook */
    public static function give(Holder $holder, ?\Closure $hook): void
    {
        if ($hook === null) {
            Warning::raise((string) $holder);

            return;
        }
        try {
            $hook($holder);
        } catch (\Throwable $thrown) {
            if (Scheduler::isCancelledBy($thrown)) {
                throw $thrown;
            }
            Warning::raise(\sprintf('pool "%s": the hook "leaked" threw %s: %s. The leak was: %s', $holder->pool, $thrown::class, $thrown->getMessage(), $holder));
        }
    }
}
