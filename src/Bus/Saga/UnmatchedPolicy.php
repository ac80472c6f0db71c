<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/** The action for a message that no saga can handle. */
enum UnmatchedPolicy
{
    /** The message is dead-lettered with {@see SagaNotFoundException}, {@see SagaAlreadyEndedException} or {@see SagaExistsException}. */
    case DeadLetter;

    /**
     * The message is retried with the bus's default retry and then dead-lettered with {@see SagaNotStartedException}; for messages that may overtake the
     * start.
     */
    case Retry;

    /** The message is acknowledged and logged. */
    case Ignore;
}
