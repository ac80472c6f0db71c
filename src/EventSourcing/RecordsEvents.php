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
}
