<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * The connection of a {@see Listener} was lost and is there again: what was sent in between is gone. Look for yourself what
 * has changed; from here on nothing is missed again.
 */
final class NotificationsMissed
{
    /** @param string $reason how the connection was lost */
    public function __construct(public readonly string $reason)
    {
    }
}
