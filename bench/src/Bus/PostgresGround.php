<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\ProcessTree;

/** One PostgreSQL that is both broker and database. */
final class PostgresGround implements Ground
{
    public function __construct(private readonly PostgresDatabase $database, private readonly ?ProcessTree $process)
    {
    }

    public function reset(): void
    {
        $this->database->dropQueues();
        $this->database->reset();
    }

    public function environment(): array
    {
        return ['TRANSPORT' => Transport::Postgres->value, 'DATABASE_URL' => $this->database->url()];
    }

    /** The queue's tables belong to the contender, so the contender counts its remaining messages. */
    public function inspect(Report $report): Stored
    {
        return new Stored(...$this->database->count(), queued: $report->queued ?? throw new BenchmarkException('its output has no number queued'));
    }

    public function timeline(): Timeline
    {
        return new Timeline(null);
    }

    public function cpu(): ?ServerCpu
    {
        return $this->process === null ? null : new ServerCpu(0.0, $this->process->cpuSeconds());
    }
}
