<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\MessageType;

/** The aggregate records no more events, see {@see RecordsEvents::close()}. Reverting it to an earlier version opens it again. */
#[MessageType('weft.aggregate.closed')]
final class AggregateClosed
{
    public function __construct(public readonly string $reason) {}
}
