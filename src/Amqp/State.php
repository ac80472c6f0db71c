<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** How a connection is doing. */
enum State: string
{
    case Connected = 'connected';
    /** Lost, and being restored. */
    case Connecting = 'connecting';
    /** The broker takes no messages for now (memory or disk alarm); consuming continues. */
    case Blocked = 'blocked';
    /** Will not come back. */
    case Closed = 'closed';
}
