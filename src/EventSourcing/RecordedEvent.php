<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** An event as it is stored. */
final class RecordedEvent
{
    /**
     * @param int                   $position among all events; grows, with gaps where transactions were rolled back
     * @param int                   $version  within its stream, from 1 without gaps
     * @param array<string, string> $headers  see {@see \Weft\Bus\Header}: what the handling that recorded it belonged to
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
