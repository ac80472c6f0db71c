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

    /** It is retried later, dead-lettered, or both. */
    case Failed;

    /** It was not settled and is delivered again. */
    case Requeued;
}
