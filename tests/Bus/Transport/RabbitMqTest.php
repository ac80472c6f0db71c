<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Internal\RabbitMq\Publishing;
use Weft\Bus\Transport;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\TransportFailed;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Internal\Scheduler;

use function Weft\async;
use function Weft\delay;

final class RabbitMqTest extends TransportConformance
{
    /** @var array<string, true> */
    private array $used = [];

    protected function connect(): Transport
    {
        return RabbitMq::connect($this->dsn());
    }

    public function testAQueueThatIsDeletedUnderAConsumerIsAnErrorThatNamesIt(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $consumer = $transport->consume($this->queue(), 10);
            $deleter = async(function (): void {
                delay(0.1);
                $connection = Scheduler::await(AmqpConnection::open($this->dsn()));
                Scheduler::await($connection->deleteQueue($this->queue()));
                Scheduler::await($connection->close());
            });
            try {
                $consumer->next(10, wait: 5.0);
                self::fail('nothing was thrown');
            } catch (TransportFailed $failed) {
                self::assertStringContainsString($this->queue(), $failed->getMessage());
            }
            $deleter->await();
        });
    }

    public function testAQueueThatExistsWithOtherArgumentsIsAnErrorThatNamesIt(): void
    {
        $this->on(function (Transport $transport): void {
            $connection = Scheduler::await(AmqpConnection::open($this->dsn()));
            Scheduler::await($connection->declare([], [['name' => $this->queue(), 'durable' => false]], []));
            Scheduler::await($connection->close());

            $this->expectException(TransportFailed::class);
            $this->expectExceptionMessageMatches("/{$this->queue()}.*inequivalent/");

            $transport->declare($this->queue(), [$this->type('a')]);
        });
    }

    public function testValuesThatOtherProgramsPutIntoHeadersArriveAsText(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $connection = Scheduler::await(AmqpConnection::open($this->dsn()));
            $publisher = Scheduler::await($connection->publisher(true, 10));
            $headers = ['int' => 7, 'bool' => true, 'float' => 1.5, 'null' => null, 'list' => [1, 'a/b'], 'map' => ['a' => 1]];
            Scheduler::await($publisher->publish(Publishing::EVENTS, $this->type('a'), '{}', $headers, [], false, true, true));
            Scheduler::await($connection->close());

            [$delivery] = $this->take($transport->consume($this->queue(), 1), 1);
            self::assertSame($this->type('a'), $delivery->type, 'the routing key, since there is no type');
            self::assertEquals(['int' => '7', 'bool' => 'true', 'float' => '1.5', 'null' => 'null', 'list' => '[1,"a/b"]', 'map' => '{"a":1}'], $delivery->headers);
        });
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
