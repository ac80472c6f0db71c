<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** A stored event. */
final class RecordedEvent
{
    /**
     * @param int                   $position in the order of all events; increasing, with gaps after rollbacks
     * @param int                   $version  in its stream, from 1 without gaps
     * @param array<string, string> $headers  see {@see \Weft\Bus\Header}: correlation of the message that led to it
     */
    public function __construct(
        public readonly int $position,
        public readonly string $stream,
        public readonly int $version,
        public readonly object $event,
        public readonly array $headers,
        public readonly \DateTimeImmutable $recordedAt,
    ) {}
}
