<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

/**
 * The outcome of a delivery.
 *
 * @internal
 */
enum Outcome
{
    /** Its handlers have succeeded, or there was nothing to do. */
    case Succeeded;

    /** It is retried later. */
    case PutOff;

    /** It is a dead letter; some of its handlers may be retried later. */
    case DeadLettered;

    /** It was not settled and is delivered again. */
    case Requeued;
}
