<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\EventWriter;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\ServerSentEvent;

/**
 * An event stream. The extension sends its heartbeats and ends it when the server stops.
 *
 * @internal
 */
final class EventBody implements Body
{
    /** @param iterable<string|ServerSentEvent>|\Closure(EventWriter): mixed $events */
    public function __construct(private readonly iterable|\Closure $events, private readonly float $heartbeat)
    {
    }

    public function send(Request $request, Response $response): void
    {
        $stream = $request->streamEvents($response->status, $response->headers, $this->heartbeat);
        StreamedBody::write($stream, function (BodyWriter $writer): void {
            $writer = new EventWriter($writer);
            $events = $this->events instanceof \Closure ? ($this->events)($writer) : $this->events;
            if (\is_iterable($events)) {
                foreach ($events as $event) {
                    $writer->send($event);
                }
            } elseif (\is_string($events) || $events instanceof ServerSentEvent) {
                throw StreamedBody::unwritten($this->events, $events);
            }
        });
    }
}
