<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\MessageType;

/** Stands where an event was whose contents were erased, see {@see EventStore::erase()}. */
#[MessageType(self::TYPE)]
final class EventErased
{
    /** @internal */
    public const TYPE = 'weft.event.erased';

    /** @param string $type the type name of the event that was here */
    public function __construct(public readonly string $type) {}
}
