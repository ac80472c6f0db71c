<?php

declare(strict_types=1);

namespace Weft\Sql;

/** What {@see Connection::notify()} or PostgreSQL's `NOTIFY` sent. */
final readonly class Notification
{
    /**
     * @param string $payload empty where none was given
     * @param int $pid the server process of the session that sent it
     */
    public function __construct(public string $channel, public string $payload, public int $pid)
    {
    }
}
