<?php

declare(strict_types=1);

namespace Weft\Amqp;

/** An event of a connection, for the log. */
final class Event
{
    /** @param string $message the cause, without passwords; may be empty */
    public function __construct(
        public readonly EventKind $kind,
        public readonly string $message,
    ) {}
}
