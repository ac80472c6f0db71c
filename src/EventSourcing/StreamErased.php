<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\MessageType;

/** All events of the stream before this one were erased, see {@see EventStore::erase()}: projections delete what they know from them. */
#[MessageType('weft.stream.erased')]
final class StreamErased
{
    public function __construct(
        public readonly string $stream,
        public readonly string $reason,
    ) {}
}
