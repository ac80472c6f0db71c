<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\MessageType;

/** Reverts the events of its stream above a version: an aggregate is loaded as if they and this event did not exist. */
#[MessageType('weft.stream.reverted')]
final class StreamReverted
{
    /** @param int $to the last version that counts */
    public function __construct(
        public readonly string $stream,
        public readonly int $to,
    ) {}
}
