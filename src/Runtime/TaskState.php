<?php

declare(strict_types=1);

namespace Weft\Runtime;

enum TaskState: string
{
    /** Not started yet. */
    case Queued = 'queued';
    case Running = 'running';
    /** Could go on, and waits for its turn. */
    case Ready = 'ready';
    /** Suspended until something happens. */
    case Waiting = 'waiting';
    case Completed = 'completed';
    case Failed = 'failed';
    case Cancelled = 'cancelled';
}
