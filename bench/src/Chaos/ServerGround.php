<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use function Weft\delay;

/** A RabbitMQ and a PostgreSQL of this run alone, each behind a proxy. */
final class ServerGround implements Ground
{
    private readonly Server $rabbitmq;
    private readonly Server $postgres;

    public function __construct(string $root, string $directory, string $log)
    {
        $this->rabbitmq = new Server($root, $directory, $log, 'rabbitmq', 'AMQP_URL');
        $this->postgres = new Server($root, $directory, $log, 'postgres', 'DATABASE_URL');
    }

    public function broker(): string
    {
        return $this->rabbitmq->url();
    }

    public function database(): string
    {
        return $this->postgres->url();
    }

    public function directDatabase(): string
    {
        return $this->postgres->directUrl();
    }

    public function faults(): array
    {
        return [
            'broker_restart' => fn (): string => $this->rabbitmq->restart(1.0),
            'database_restart' => fn (): string => $this->postgres->restart(1.0),
            'broker_cut' => fn (): string => $this->rabbitmq->cut(),
            'database_cut' => fn (): string => $this->postgres->cut(),
            'broker_slow' => fn (): string => $this->rabbitmq->slow(0.05, 1.5),
            'database_slow' => fn (): string => $this->postgres->slow(0.02, 1.5),
            'broker_alarm' => $this->alarm(...),
        ];
    }

    public function close(): void
    {
        $this->rabbitmq->close();
        $this->postgres->close();
    }

    private function alarm(): string
    {
        $this->rabbitmq->services('rabbitmqctl', 'set_vm_memory_high_watermark', '0.00001');
        delay(1.0);
        $this->rabbitmq->services('rabbitmqctl', 'set_vm_memory_high_watermark', '0.4');

        return 'memory alarm raised and cleared';
    }
}
