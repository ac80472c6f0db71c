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
}
