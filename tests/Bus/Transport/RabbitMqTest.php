<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\Transport\RabbitMq;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Internal\Scheduler;

final class RabbitMqTest extends TransportConformance
{
    /** @var array<string, true> */
    private array $used = [];

    protected function connect(): Transport
    {
        return RabbitMq::connect($this->dsn());
    }

    protected function queue(string $name = 'queue'): string
    {
        $queue = parent::queue($name);
        $this->used[$queue] = true;

        return $queue;
    }

    protected function tearDown(): void
    {
        $connection = Scheduler::await(AmqpConnection::open($this->dsn()));
        foreach ($this->used as $queue => $_) {
            Scheduler::await($connection->deleteQueue($queue));
            Scheduler::await($connection->deleteQueue("{$queue}.dead"));
        }
        Scheduler::await($connection->close());
    }

    private function dsn(): string
    {
        $dsn = \getenv('AMQP_URL');
        self::assertNotFalse($dsn, 'AMQP_URL is not set: run `make services`');

        return $dsn;
    }
}
