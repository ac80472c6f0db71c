<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Header;
use Weft\Bus\Internal\RabbitMq\Publisher;
use Weft\Bus\PublishException;
use Weft\Bus\TopologyConflictException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\TransportException;
use Weft\Bus\UnroutableMessageException;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Internal\Scheduler;
use Weft\Tests\Bus\Fixtures\ClosingRelay;

use function Weft\async;
use function Weft\delay;

final class RabbitMqTest extends RabbitMqConformance
{
    protected function kind(): ?RabbitMqQueue
    {
        return null;
    }

    public function testAQueueThatIsDeletedUnderAConsumerIsDeclaredAgainAndItsOldDeliveriesSettleNothing(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', 'old')]);
            $consumer = $transport->consume($this->queue(), 10);
            [$old] = $this->take($consumer, 1);
            foreach (['first', 'second'] as $body) {
                $arrival = async(fn(): Delivery => $this->take($consumer, 1)[0]);
                $this->elsewhere(fn(AmqpConnection $connection): int => $connection->deleteQueue($this->queue()));
                $this->publishUntilThereIsAQueue($transport, $this->message('a', $body, mustRoute: true));

                $delivery = $arrival->await();
                self::assertSame($body, $delivery->body);
                $consumer->ack($old);
                $old = $delivery;
            }
            $consumer->close();
            self::assertSame(['second'], $this->drain($transport), 'the tags of the deleted queues are those of the new one, too');
        });
    }

    public function testAQueueOfAnotherProgramThatIsDeletedUnderAConsumerIsAnErrorThatNamesIt(): void
    {
        $this->on(function (Transport $transport): void {
            $this->elsewhere(fn(AmqpConnection $connection): int => $connection->declare([], [['name' => $this->queue(), 'durable' => true]], []));
            $consumer = $transport->consume($this->queue(), 10);
            $deleter = async(function (): void {
                delay(0.1);
                $this->elsewhere(fn(AmqpConnection $connection): int => $connection->deleteQueue($this->queue()));
            });
            try {
                $consumer->next(10, wait: 50.0);
                self::fail('nothing was thrown');
            } catch (TransportException $failed) {
                self::assertStringContainsString($this->queue(), $failed->getMessage());
            }
            $deleter->await();
        });
    }

    public function testAQueueThatExistsWithOtherArgumentsIsAnErrorThatNamesThoseOfBothSides(): void
    {
        $this->on(function (Transport $transport): void {
            $arguments = ['x-queue-type' => 'classic', 'x-max-priority' => 3];
            $this->elsewhere(fn(AmqpConnection $connection): int
                => $connection->declare([], [['name' => $this->queue(), 'durable' => true, 'arguments' => $arguments]], []));
            $priorities = RabbitMq::connect($this->dsn(), queues: [$this->queue() => RabbitMqQueue::classic(priorities: 9)]);
            try {
                $priorities->declare($this->queue(), [$this->type('a')]);
                self::fail('declared');
            } catch (TopologyConflictException $conflict) {
                self::assertStringContainsString("\"{$this->queue()}\" exists with other arguments", $conflict->getMessage());
                self::assertStringContainsString('"x-max-priority":9', $conflict->getMessage());
                self::assertMatchesRegularExpression("/received .*'9'.* current is .*'3'/", $conflict->getMessage());
            }
            $priorities->close();
        });
    }

    public function testAMessageOnWhichTheBrokerClosesEachConnectionIsRejectedAndOthersPass(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $relay = new ClosingRelay($this->dsn(), 'poison');
            $publishing = RabbitMq::connect($relay->dsn);
            try {
                $publishing->publish([$this->message('a', 'poison')]);
                self::fail('published');
            } catch (PublishException $failed) {
                self::assertStringContainsString('the broker closed the connection: INTERNAL_ERROR (AMQP 541)', $failed->getMessage());
                self::assertSame([false, true], [$failed->refused, $failed->nacked], 'it may be another message that is the cause');
            }
            $publishing->publish([$this->message('a', 'next')]);
            $publishing->close();
            $relay->stop();
            self::assertSame(3, $relay->closed);
            self::assertSame(['next'], $this->drain($transport));
        });
    }

    public function testHigherPrioritiesAreDeliveredFirstWhereTheQueueHasThem(): void
    {
        $this->on(function (Transport $transport): void {
            $priorities = RabbitMq::connect($this->dsn(), queue: RabbitMqQueue::classic(priorities: 9));
            $priorities->declare($this->queue(), [$this->type('a')]);
            $message = fn(string $body, ?string $priority): Outgoing
                => new Outgoing($this->type('a'), $body, $priority === null ? [] : [Header::PRIORITY => $priority]);
            $priorities->publish([$message('1', null), $message('2', '3'), $message('3', '9'), $message('4', '5'), $message('5', '4')]);

            $deliveries = $this->take($priorities->consume($this->queue(), 10), 5);
            self::assertSame(['3', '4', '1', '5', '2'], \array_column($deliveries, 'body'));
            self::assertSame([Header::PRIORITY => '9'], $deliveries[0]->headers);
            $priorities->close();
        });
    }

    public function testASingleActiveConsumerGetsEverythingUntilItGoes(): void
    {
        $this->on(function (Transport $transport): void {
            $single = RabbitMq::connect($this->dsn(), queue: RabbitMqQueue::quorum(singleActiveConsumer: true));
            $single->declare($this->queue(), [$this->type('a')]);
            $first = $single->consume($this->queue(), 2);
            $second = $single->consume($this->queue(), 2);
            $single->publish(\array_map(fn(int $i): Outgoing => $this->message('a', (string) $i), \range(1, 6)));
            $taken = $this->take($first, 2);
            self::assertSame(['1', '2'], \array_column($taken, 'body'));
            self::assertSame([], $second->next(10, wait: 0.4));

            \array_map($first->ack(...), $taken);
            $first->close();

            $rest = [];
            while (\count($rest) < 4) {
                [$delivery] = $this->take($second, 1);
                $rest[] = $delivery->body;
                $second->ack($delivery);
            }
            \sort($rest);
            self::assertSame(['3', '4', '5', '6'], $rest);
            $single->close();
        });
    }

    public function testAStreamIsReadAgainFromAnOffsetAndAnswersWhatIsRequeued(): void
    {
        $this->on(function (Transport $transport): void {
            $stream = RabbitMq::connect($this->dsn(), queue: RabbitMqQueue::stream('first', maxBytes: 1_000_000));
            $stream->declare($this->queue(), [$this->type('a')]);
            $stream->publish(\array_map(fn(int $i): Outgoing => $this->message('a', (string) $i), \range(1, 20)));
            $consumer = $stream->consume($this->queue(), 5);
            $bodies = [];
            while (\count($bodies) < 21) {
                foreach ($this->take($consumer, 1) as $delivery) {
                    $bodies[] = $delivery->body;
                    \count($bodies) === 7 ? $consumer->requeue($delivery) : $consumer->ack($delivery);
                }
            }
            self::assertSame(['7', '7'], [$bodies[6], $bodies[7]], 'given back, it is handled again here');
            self::assertSame(\array_map('strval', \range(1, 20)), \array_values(\array_unique($bodies)));
            $consumer->close();

            $later = RabbitMq::connect($this->dsn(), queue: RabbitMqQueue::stream(17));
            [$delivery] = $this->take($later->consume($this->queue(), 5), 1);
            self::assertSame(['18', '17'], [$delivery->body, $delivery->headers['x-stream-offset']]);
            $later->close();
            $stream->close();
        });
    }

    public function testInvalidOptionsOfAQueueAreRefused(): void
    {
        $wrong = [
            'must be 0 to 9' => static fn() => RabbitMqQueue::classic(priorities: 10),
            'at least 1 replica' => static fn() => RabbitMqQueue::quorum(replicas: 0),
            'not by an argument' => static fn() => RabbitMqQueue::classic(arguments: ['x-queue-type' => 'quorum']),
            'got "beginning"' => static fn() => RabbitMqQueue::stream('beginning'),
            'at least 1 byte' => static fn() => RabbitMqQueue::stream(maxBytes: 0),
        ];
        foreach ($wrong as $message => $make) {
            try {
                $make();
                self::fail($message);
            } catch (\ValueError $error) {
                self::assertStringContainsString($message, $error->getMessage());
            }
        }
    }

    public function testValuesThatOtherProgramsPutIntoHeadersArriveAsText(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $connection = Scheduler::await(AmqpConnection::open($this->dsn()));
            $publisher = Scheduler::await($connection->publisher(true, 10));
            $headers = ['int' => 7, 'bool' => true, 'float' => 1.5, 'null' => null, 'list' => [1, 'a/b'], 'map' => ['a' => 1]];
            Scheduler::await($publisher->publish(Publisher::EVENTS, $this->type('a'), '{}', $headers, [], false, true, true));
            Scheduler::await($connection->close());

            [$delivery] = $this->take($transport->consume($this->queue(), 1), 1);
            self::assertSame($this->type('a'), $delivery->type, 'the routing key, since there is no type');
            self::assertEquals(['int' => '7', 'bool' => 'true', 'float' => '1.5', 'null' => 'null', 'list' => '[1,"a/b"]', 'map' => '{"a":1}'], $delivery->headers);
        });
    }

    /** After the queue was deleted nothing is bound, until a consumer notices. */
    private function publishUntilThereIsAQueue(Transport $transport, Outgoing $message): void
    {
        while (true) {
            try {
                $transport->publish([$message]);

                return;
            } catch (UnroutableMessageException) {
                delay(0.1);
            }
        }
    }
}
