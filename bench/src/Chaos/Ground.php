<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

/** The servers of one run, how to reach them and how to break them. */
interface Ground
{
    /** Where workers and driver find the broker, through what can be cut. */
    public function broker(): string;

    public function database(): string;

    /** Where the database is counted at the end, directly. */
    public function directDatabase(): string;

    /** @return array<string, \Closure(): string> by name; each does its work and says what it did */
    public function faults(): array;

    /** Undoes every fault and, where it started servers, stops them. */
    public function close(): void;
}
