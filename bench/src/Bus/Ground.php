<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** The broker and the database of a contender. Every run starts with empty ones and is judged by their contents afterwards. */
interface Ground
{
    public function reset(): void;

    /** @return array<string, string> variables that tell the contender where they are */
    public function environment(): array;

    public function inspect(Report $report): Stored;

    /** A new record of the broker's counters, empty if it has none. */
    public function timeline(): Timeline;

    /** Seconds the broker and the database have computed so far, where they are servers of known process ids. */
    public function cpu(): ?ServerCpu;
}
