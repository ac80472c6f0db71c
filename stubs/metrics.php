<?php

declare(strict_types=1);

namespace Weft\Native;

/** Counts durations by upper bounds from 0.1 ms to 10 s. The same name and labels are the same histogram. */
final class Histogram
{
    /**
     * @param string $name ends in `_seconds`
     * @param array<string, string> $labels
     */
    public function __construct(string $name, string $help, array $labels)
    {
    }

    /** @param float $duration seconds */
    public function record(float $duration): void
    {
    }
}

/** `/metrics`, `/ready` and `/live` of a process without supervisor, answered by a thread of its own. */
final class MetricsEndpoint
{
    /**
     * Listens, and begins to measure.
     *
     * @param string $address `127.0.0.1:9464`; port 0 chooses one
     *
     * @throws \Weft\Http\ListenException
     */
    public static function open(string $address): MetricsEndpoint
    {
    }

    /** The address that it listens on, with the actual port. */
    public function address(): string
    {
    }

    /**
     * The state of `/ready` from now on; it is not ready before the first call.
     *
     * @param list<string> $failing the health checks that fail
     */
    public function update(bool $ready, bool $stopping, array $failing): void
    {
    }
}

/** Whether the metrics of this process can be read: by a supervisor, or at an endpoint of its own. */
function measured(): bool
{
}

/**
 * Adds to a counter of this process. Its name ends in `_total`.
 *
 * @param array<string, string> $labels
 */
function addToCounter(string $name, string $help, array $labels, int $by): void
{
}

/** @param array<string, string> $labels */
function setGauge(string $name, string $help, array $labels, float $value): void
{
}

/** The metrics of this process in Prometheus text format 0.0.4. */
function metrics(): string
{
}
