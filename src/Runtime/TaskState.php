<?php

declare(strict_types=1);

namespace Weft\Runtime;

enum TaskState: string
{
    /** Not started yet. */
    case Queued = 'queued';
    case Running = 'running';
    /** Ready to continue at its next turn. */
    case Ready = 'ready';
    /** Suspended until an operation ends or another task wakes it. */
    case Waiting = 'waiting';
    case Completed = 'completed';
    case Failed = 'failed';
    case Cancelled = 'cancelled';
}
