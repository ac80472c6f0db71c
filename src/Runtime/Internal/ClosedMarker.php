<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * What a channel hands to those who wait when it is closed: no value of a user's can be the same.
 *
 * @internal
 */
enum ClosedMarker
{
    case Closed;
}
