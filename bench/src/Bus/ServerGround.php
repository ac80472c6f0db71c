<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\ProcessTree;

/** RabbitMQ and PostgreSQL. */
final class ServerGround implements Ground
{
    private const QUEUE = 'customers';

    public function __construct(
        private readonly RabbitMqBroker $broker,
        private readonly PostgresDatabase $database,
        private readonly ?ProcessTree $brokerProcess,
        private readonly ?ProcessTree $databaseProcess,
        private readonly ?Counters $counters,
    ) {
    }

    public function reset(): void
    {
        $this->broker->reset();
        $this->database->reset();
    }

    public function environment(): array
    {
        return [
            'TRANSPORT' => Transport::RabbitMq->value,
            'AMQP_URL' => $this->broker->url(),
            'DATABASE_URL' => $this->database->url(),
            'BENCH_QUEUE' => self::QUEUE,
        ];
    }

    public function inspect(Report $report): Stored
    {
        return new Stored(...$this->database->count(), queued: $this->broker->queued());
    }

    public function timeline(): Timeline
    {
        return new Timeline($this->counters);
    }

    public function cpu(): ?ServerCpu
    {
        return $this->brokerProcess === null || $this->databaseProcess === null
            ? null
            : new ServerCpu($this->brokerProcess->cpuSeconds(), $this->databaseProcess->cpuSeconds());
    }
}
