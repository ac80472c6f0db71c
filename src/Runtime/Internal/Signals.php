<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native;

/**
 * Waits for one of several signals.
 *
 * @internal
 */
final class Signals
{
    #[WaitsFor('a signal')]
    public static function first(int ...$signals): int
    {
        $ops = \array_map(Native\signal(...), $signals);
        $scheduler = Scheduler::task()?->scheduler;
        try {
            $first = $scheduler === null ? Blocking::awaitFirst(...$ops) : self::park($scheduler, $ops, $signals);
        } finally {
            foreach ($ops as $op) {
                if ($op !== ($first ?? null)) {
                    $scheduler === null ? Native\cancel($op) : $scheduler->unwatch($op);
                }
            }
        }

        return Scheduler::await($first);
    }

    /**
     * @param array<int> $ops
     * @param array<int> $signals
     */
    private static function park(Scheduler $scheduler, array $ops, array $signals): int
    {
        $arrival = new WaitQueue('one of the signals ' . \implode(', ', $signals));
        foreach ($ops as $op) {
            $scheduler->watch($op, static function (int $op) use ($arrival): void {
                Blocking::$finished[$op] = true;
                $arrival->wake($op);
            });
        }
        // The first poll installs the handlers, so that a signal that another task raises at once is not missed.
        $scheduler->poll(0.0);
        foreach ($ops as $op) {
            if (isset(Blocking::$finished[$op])) {
                return $op;
            }
        }

        return $arrival->wait();
    }
}
