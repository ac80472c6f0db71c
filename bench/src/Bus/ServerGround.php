<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\ProcessTree;

/** RabbitMQ and PostgreSQL. */
final class ServerGround implements Ground
{
    private const QUEUE = 'customers';

    private function __construct(
        public readonly RabbitMqBroker $broker,
        public readonly PostgresDatabase $database,
        private readonly ?ProcessTree $brokerProcess,
        private readonly ?ProcessTree $databaseProcess,
        private readonly ?Counters $counters,
    ) {
    }

    /**
     * @param array<string, string> $services AMQP_URL and RABBITMQ_MANAGEMENT_URL, DATABASE_URL; where they are known also
     *        RABBITMQ_PID, POSTGRES_PID and RABBITMQ_PROMETHEUS_URL
     */
    public static function connect(array $services): self
    {
        return new self(
            new RabbitMqBroker($services['AMQP_URL'], $services['RABBITMQ_MANAGEMENT_URL']),
            new PostgresDatabase($services['DATABASE_URL']),
            isset($services['RABBITMQ_PID']) ? new ProcessTree((int) $services['RABBITMQ_PID']) : null,
            isset($services['POSTGRES_PID']) ? new ProcessTree((int) $services['POSTGRES_PID']) : null,
            isset($services['RABBITMQ_PROMETHEUS_URL']) ? new Counters($services['RABBITMQ_PROMETHEUS_URL']) : null,
        );
    }

    /** PostgreSQL alone. */
    public function withoutBroker(): PostgresGround
    {
        return new PostgresGround($this->database, $this->databaseProcess);
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
