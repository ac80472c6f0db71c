<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Event: a delayed message was cancelled with a reason, see {@see Bus::cancel()}. */
#[MessageType('weft.delayed.cancelled')]
final class DelayedMessageCancelled
{
    /** @param string $id as {@see Bus::send()} returned it */
    public function __construct(
        public readonly string $id,
        public readonly string $reason,
    ) {}
}
