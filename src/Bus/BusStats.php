<?php

declare(strict_types=1);

namespace Weft\Bus;

/** What a bus has done so far in this process. */
final class BusStats
{
    /** Commands whose handler succeeded. */
    public int $commands = 0;

    /** Events whose listeners all succeeded, or that had none. */
    public int $events = 0;

    /** Messages whose handling failed; each comes back later, was parked or, where that failed too, given back to its queue. */
    public int $failed = 0;

    /** Failed messages that reached the dead-letter queue. */
    public int $deadLettered = 0;

    /** Handlers that had nothing to do, because they have handled the message before. */
    public int $duplicates = 0;

    /** Failed messages that come back later. */
    public int $retried = 0;

    /** Messages that nobody needed any more when it was their turn, see {@see Expires}; they are dropped. */
    public int $expired = 0;

    /** Messages sent and published, from handlers and outside. */
    public int $sent = 0;

    /** Messages being handled or acknowledged right now. */
    public int $inFlight = 0;

    /** Messages handled with success. */
    public function succeeded(): int
    {
        return $this->commands + $this->events;
    }
}
