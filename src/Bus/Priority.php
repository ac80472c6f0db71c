<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * How urgent messages of a class are; {@see Bus::send()} can say it of one message. Without either it is 4.
 *
 * Of the messages a consumer has taken from its queue those of the highest priority are started first, equal ones in their
 * order. Messages that are still with the broker are not overtaken: with a long queue the prefetch says how far a message can
 * jump ahead.
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
