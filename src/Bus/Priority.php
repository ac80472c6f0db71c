<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Sets the priority of messages of a class; {@see Bus::send()} can set it for one message. The default is 4.
 *
 * Of the messages that the consumer has prefetched, the highest priority starts first, equal priorities in their order. Messages that
 * are still in the queue are not overtaken, so the prefetch limits how far a message can jump ahead.
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
