<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/** What happens to a message that no saga can handle. */
enum UnmatchedPolicy
{
    /** The message is dead-lettered with {@see SagaNotFound}, {@see SagaAlreadyEnded} or {@see SagaExists}. */
    case DeadLetter;

    /**
     * The message is retried with the bus's default retry and then dead-lettered with {@see SagaNotStarted}; for messages that may overtake the
     * start.
     */
    case Retry;

    /** The message is acknowledged and logged. */
    case Ignore;
}
