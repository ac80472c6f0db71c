<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** The broker and the database a contender works on. Every run gets them empty and is judged by what is in them afterwards. */
interface Ground
{
    public function reset(): void;

    /** @return array<string, string> variables that tell the contender where they are */
    public function environment(): array;

    public function inspect(Report $report): Stored;

    /** A new record of what the broker counts, empty where it does not. */
    public function timeline(): Timeline;

    /** Seconds the broker and the database have computed so far, where they are servers of known process ids. */
    public function cpu(): ?ServerCpu;
}
