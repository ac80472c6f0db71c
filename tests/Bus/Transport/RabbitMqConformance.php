<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Internal\Scheduler;

/** The suite on RabbitMQ, with one kind of queue. */
abstract class RabbitMqConformance extends TransportConformance
{
    /** @var array<string, true> */
    private array $used = [];

    abstract protected function kind(): ?RabbitMqQueue;

    protected function connect(): Transport
    {
        return RabbitMq::connect($this->dsn(), queue: $this->kind());
    }

    protected function queue(string $name = 'queue'): string
    {
        $queue = parent::queue($name);
        $this->used[$queue] = true;

        return $queue;
    }

    /** Connects as a program of its own would, does something and goes. */
    protected function elsewhere(\Closure $do): mixed
    {
        $connection = Scheduler::await(AmqpConnection::open($this->dsn()));
        $result = Scheduler::await($do($connection));
        Scheduler::await($connection->close());

        return $result;
    }

    protected function tearDown(): void
    {
        foreach ($this->used as $queue => $_) {
            $this->elsewhere(static fn(AmqpConnection $connection): int => $connection->deleteQueue($queue));
            $this->elsewhere(static fn(AmqpConnection $connection): int => $connection->deleteQueue("{$queue}.dead"));
        }
    }

    protected function dsn(): string
    {
        $dsn = \getenv('AMQP_URL');
        self::assertNotFalse($dsn, 'AMQP_URL is not set: run `make services`');

        return $dsn;
    }
}
