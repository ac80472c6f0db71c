<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Sets the priority of messages of a class; {@see Bus::send()} can set it for one message. The default is 4.
 *
 * A consumer starts its prefetched messages by priority, messages of the same priority in their order. A message does not overtake those that
 * are still in the queue, so the prefetch limits how far it can move ahead.
 */
#[\Attribute(\Attribute::TARGET_CLASS)]
final class Priority
{
    public const NORMAL = 4;

    /** @param int<0, 9> $level */
    public function __construct(public readonly int $level)
    {
        Internal\Sending\MessageHeaders::priority($level);
    }
}
