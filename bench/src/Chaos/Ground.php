<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

/** The servers of one run, how to reach them and how to break them. */
interface Ground
{
    /** The address of the broker for workers and driver, through a proxy that can cut connections. */
    public function broker(): string;

    public function database(): string;

    /** Where the database is counted at the end, directly. */
    public function directDatabase(): string;

    /** @return array<string, \Closure(): string> by name; each injects a fault and describes it */
    public function faults(): array;

    /** Undoes every fault and, where it started servers, stops them. */
    public function close(): void;
}
