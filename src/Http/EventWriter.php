<?php

declare(strict_types=1);

namespace Weft\Http;

/** Sends server-sent events to one client, see `Response::events()`. */
final class EventWriter
{
    /** @internal */
    public function __construct(private readonly BodyWriter $body)
    {
    }

    /**
     * Sends an event; a string is sent as the data of one. Waits while more than 64 KiB are buffered for the client.
     *
     * @throws ClientDisconnectedException
     */
    public function send(string|ServerSentEvent $event): void
    {
        $this->body->write((string) ($event instanceof ServerSentEvent ? $event : new ServerSentEvent($event)));
    }
}
