<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Sets the priority of messages of a class; {@see Bus::send()} can set it for one message. The default is 4.
 *
 * A consumer starts its prefetched messages by priority, messages of the same priority in their order. A message does not overtake those that
 * are still in the queue, so the prefetch limits how far it can move ahead.
 *
 * With {@see OrderedBy} it decides between keys: messages of a key stay in order. They all have the priority of their class, so such a class
 * shares its order with no other (`$group`), and {@see SendOptions} refuses another priority.
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
