<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

/** A job of Laravel on its way; each queue has a message class of its own, see {@see QueueType}. */
abstract class QueuedJob
{
    /**
     * @param string $payload as Laravel's queues write it: JSON
     * @param int<0, max> $attempts how many times the job was tried before
     */
    final public function __construct(public readonly string $payload, public readonly int $attempts = 0)
    {
    }
}
