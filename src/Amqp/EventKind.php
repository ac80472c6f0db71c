<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** The kinds of events of a connection. */
enum EventKind: string
{
    /** The broker takes no messages for now (memory or disk alarm). */
    case Blocked = 'blocked';
    case Unblocked = 'unblocked';
    case Disconnected = 'disconnected';
    /** One attempt failed; the next follows after a pause of at most 2 seconds. */
    case ReconnectFailed = 'reconnect failed';
    case Recovered = 'recovered';
    /** An exchange, queue, binding or consumer could not be restored; the others were. */
    case RestoreFailed = 'restore failed';
    /** The broker closed one channel, usually for a mistake in what was asked; it is opened again. */
    case ChannelClosed = 'channel closed';
    /** The broker ended a consumer, usually because its queue was deleted; it is started again if possible. */
    case ConsumerCancelled = 'consumer cancelled';
}
