<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Somebody wants the benchmark to end. No failure of a contender, so that nothing but the clean-up catches it. */
final class Interrupted extends \Exception
{
    /** Makes SIGINT, SIGTERM and SIGHUP throw it wherever this process is. */
    public static function arm(): void
    {
        pcntl_async_signals(true);
        foreach ([SIGINT, SIGTERM, SIGHUP] as $signal) {
            pcntl_signal($signal, static fn (int $signal) => throw new self('interrupted', $signal));
        }
    }

    /** Postpones it to {@see resume()}: a process is started and kept in a variable, so that the clean-up knows it. */
    public static function postpone(): void
    {
        pcntl_async_signals(false);
    }

    /** @throws self when a signal has come since {@see postpone()} */
    public static function resume(): void
    {
        pcntl_async_signals(true);
        pcntl_signal_dispatch();
    }
}
