<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The state of a connection. */
enum State: string
{
    case Connected = 'connected';
    /** Lost, and being restored. */
    case Connecting = 'connecting';
    /** The broker takes no messages for now (memory or disk alarm); consuming continues. */
    case Blocked = 'blocked';
    /** Closed for good. */
    case Closed = 'closed';
}
