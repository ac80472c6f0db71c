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
}
