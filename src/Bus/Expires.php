<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Sets after how many seconds messages of a class expire; {@see Bus::send()} can set it for one message.
 *
 * The time starts when the message is published, by the sender's clock. An expired message is not handled: it is acknowledged, logged
 * (level info) and counted in {@see BusStats::$expired}. Messages that wait for a retry expire too; a dead letter that is retried
 * manually does not.
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
