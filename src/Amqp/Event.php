<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** Something that happened to a connection and that belongs into a log. */
final class Event
{
    /** @param string $message the cause, without passwords; may be empty */
    public function __construct(
        public readonly EventKind $kind,
        public readonly string $message,
    ) {}
}
