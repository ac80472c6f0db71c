<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

/** What becomes of a message that no saga can take. */
enum UnmatchedPolicy
{
    /** It is parked with {@see SagaNotFound}, {@see SagaAlreadyEnded} or {@see SagaExists}. */
    case DeadLetter;

    /** It is tried again as the bus's default retry says, and then parked with {@see SagaNotStarted}: for what may overtake the start. */
    case Retry;

    /** It is acknowledged and logged. */
    case Ignore;
}
