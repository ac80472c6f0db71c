<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * After how many seconds nobody needs messages of a class any more; {@see Bus::send()} can say it of one message.
 *
 * The time runs from when a message leaves, by the sender's clock. A message whose time is over when it is its turn is not
 * handled: it is acknowledged, logged (level info) and counted in {@see BusStats::$expired}. One that waits for a retry
 * expires too; a dead letter that is retried by hand no longer does.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Expires
{
    /** @param float $after seconds, above 0 */
    public function __construct(public readonly float $after)
    {
        Internal\Sending\MessageHeaders::lifetime($after);
    }
}
