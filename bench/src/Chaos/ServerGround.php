<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\Services;

use function Weft\delay;

/** A RabbitMQ and a PostgreSQL of this run alone, each behind a proxy. */
final class ServerGround implements Ground
{
    private const SERVICES = ['rabbitmq', 'postgres'];

    /** @var array<string, string> */
    private array $urls = [];

    private readonly Proxy $amqp;
    private readonly Proxy $sql;

    public function __construct(private readonly string $root, private readonly string $folder, private readonly string $log)
    {
        foreach (self::SERVICES as $service) {
            $this->services('start', $service);
        }
        $this->urls = Services::read("{$folder}/services/env");
        $this->amqp = new Proxy((int) parse_url($this->urls['AMQP_URL'], PHP_URL_PORT));
        $this->sql = new Proxy((int) parse_url($this->urls['DATABASE_URL'], PHP_URL_PORT));
    }

    public function broker(): string
    {
        return self::through($this->urls['AMQP_URL'], $this->amqp);
    }

    public function database(): string
    {
        return self::through($this->urls['DATABASE_URL'], $this->sql);
    }

    public function directDatabase(): string
    {
        return $this->urls['DATABASE_URL'];
    }

    public function faults(): array
    {
        return [
            'broker_restart' => fn (): string => $this->restart('rabbitmq', 1.0),
            'database_restart' => fn (): string => $this->restart('postgres', 1.0),
            'broker_cut' => fn (): string => "{$this->amqp->cut()} connections to the broker cut",
            'database_cut' => fn (): string => "{$this->sql->cut()} connections to the database cut",
            'network_slow' => $this->slow(...),
            'broker_alarm' => $this->alarm(...),
        ];
    }

    public function close(): void
    {
        $this->amqp->stop();
        $this->sql->stop();
        foreach (self::SERVICES as $service) {
            $this->services('stop', $service);
        }
    }

    private function restart(string $service, float $down): string
    {
        $this->services('stop', $service);
        delay($down);
        $this->services('start', $service);

        return "{$service} stopped and started";
    }

    private function slow(): string
    {
        $this->amqp->slow(0.05);
        $this->sql->slow(0.02);
        delay(1.5);
        $this->amqp->slow(0.0);
        $this->sql->slow(0.0);

        return 'every byte took 50 ms to the broker and 20 ms to the database for 1.5 s';
    }

    private function alarm(): string
    {
        $this->services('rabbitmqctl', 'set_vm_memory_high_watermark', '0.00001');
        delay(1.0);
        $this->services('rabbitmqctl', 'set_vm_memory_high_watermark', '0.4');

        return 'memory alarm raised and cleared';
    }

    private function services(string ...$arguments): void
    {
        Command::run(["{$this->root}/scripts/services", ...$arguments], ['WEFT_VAR' => $this->folder], $this->log);
    }

    private static function through(string $url, Proxy $proxy): string
    {
        return (string) preg_replace('~@[^/]+:\d+~', "@127.0.0.1:{$proxy->port}", $url);
    }
}
