<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * The value that a closed channel hands to waiting tasks. No user value is identical to it.
 *
 * @internal
 */
enum ClosedMarker
{
    case Closed;
}
