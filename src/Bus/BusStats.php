<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Counters of a bus, in this process. */
final class BusStats
{
    /** Commands that their handler processed successfully. */
    public int $commands = 0;

    /** Events that all listeners processed successfully, or that had no listener. */
    public int $events = 0;

    /** Failed attempts to handle a message. Each ends in a retry, the dead-letter queue, or back in the queue if neither worked. */
    public int $failed = 0;

    /** Failed messages that were moved to the dead-letter queue. */
    public int $deadLettered = 0;

    /** Handler calls that were skipped or rolled back because the handler had processed the message before. */
    public int $duplicates = 0;

    /** Failed messages that were scheduled for a delayed retry. */
    public int $retried = 0;

    /** Messages that were dropped because they had expired, see {@see Expires}. */
    public int $expired = 0;

    /** Messages sent and published, inside and outside of handlers. */
    public int $sent = 0;

    /** Messages that are being handled or acknowledged now. */
    public int $inFlight = 0;

    /** Messages that were processed successfully. */
    public function succeeded(): int
    {
        return $this->commands + $this->events;
    }
}
