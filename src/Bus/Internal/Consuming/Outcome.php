<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

/**
 * What became of a delivery.
 *
 * @internal
 */
enum Outcome
{
    /** Its handlers have succeeded, or there was nothing to do. */
    case Succeeded;

    /** It comes back later, is a dead letter, or both. */
    case Failed;

    /** Nothing was settled: it is for another time. */
    case Requeued;
}
