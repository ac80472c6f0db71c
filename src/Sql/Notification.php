<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A notification sent by {@see Connection::notify()} or PostgreSQL's `NOTIFY`. */
final class Notification
{
    /**
     * @param string $payload empty where none was given
     * @param int $pid the server process of the session that sent it
     */
    public function __construct(public readonly string $channel, public readonly string $payload, public readonly int $pid)
    {
    }
}
