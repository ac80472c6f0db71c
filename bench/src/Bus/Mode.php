<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

enum Mode: string
{
    /** Publish before commit, no publisher confirms: the guarantees of every other contender. */
    case Plain = 'plain';
    /** What a handler publishes leaves only if its transaction commits, and the broker confirms it. */
    case Confirmed = 'confirmed';
    /** That with inbox, outbox and persistent messages: each effect exactly once. */
    case Safe = 'safe';
    /** The guarantees of plain, with handlers that take commands and events in batches. */
    case Batch = 'batch';
    /** Those of safe, with the same batches. */
    case BatchSafe = 'batch-safe';

    /** Whether messages are persistent, independent of the option. */
    public function isDurable(): bool
    {
        return $this === self::Safe || $this === self::BatchSafe;
    }

    public function confirms(): bool
    {
        return $this !== self::Plain && $this !== self::Batch;
    }
}
