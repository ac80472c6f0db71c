<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** An aggregate was to record an event after it was closed. */
final class AggregateClosedException extends EventSourcingException {}
