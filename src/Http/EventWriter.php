<?php

declare(strict_types=1);

namespace Weft\Http;

/** Sends events to one client (`Response::events()`). */
final class EventWriter
{
    /** @internal */
    public function __construct(private readonly BodyWriter $body)
    {
    }

    /**
     * Sends an event, text as its data. Waits while more than 64 KiB wait for the client.
     *
     * @throws ClientDisconnectedException
     */
    public function send(string|ServerSentEvent $event): void
    {
        $this->body->write((string) ($event instanceof ServerSentEvent ? $event : new ServerSentEvent($event)));
    }
}
