<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\EventSourcing\Internal\History;

/** Records events, for a class marked with {@see AggregateRoot}. */
trait RecordsEvents
{
    /**
     * Records an event: the method marked with {@see Applies} for it runs now, and {@see Aggregates::save()} stores it. An event without such
     * a method is stored and changes no property.
     */
    private function record(object $event): void
    {
        History::of($this)->record($this, $event);
    }

    /**
     * Records that the aggregate has ended: {@see AggregateClosed}. It can still be loaded.
     *
     * @param string $reason stored with the event
     * @throws AggregateClosedException when it is closed already, as for each event that is recorded afterwards
     */
    private function close(string $reason = ''): void
    {
        History::of($this)->record($this, new AggregateClosed($reason));
    }

    /** A clone is a copy of the properties, to be read: the events stay with the original, and recording or saving throws an \Error. */
    public function __clone(): void
    {
        History::refuseClone($this);
    }
}
