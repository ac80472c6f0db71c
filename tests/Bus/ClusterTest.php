<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\BusException;
use Weft\Bus\Header;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Tests\Bus\Fixtures\Cluster;

use function Weft\async;
use function Weft\delay;

/** Quorum queues on three nodes of RabbitMQ, of which one goes away. */
final class ClusterTest extends BusTestCase
{
    private const TOTAL = 12_000;
    private const CHUNK = 100;

    private Cluster $cluster;

    protected function setUp(): void
    {
        $this->cluster = new Cluster();
    }

    protected function tearDown(): void
    {
        $this->cluster->remove();
    }

    public function testNothingThatWasConfirmedIsLostWhenTheNodeOfTheQueueIsKilledWhileMessagesFlow(): void
    {
        $this->inRuntime(function (): void {
            $publisher = RabbitMq::connect($this->cluster->url, queue: RabbitMqQueue::quorum(replicas: 3));
            $publisher->declare(self::QUEUE, ['number']);
            $receiver = RabbitMq::connect($this->cluster->url, queue: RabbitMqQueue::quorum(replicas: 3));
            // Before the messages flow: it takes seconds, and other tasks continue meanwhile.
            $leader = \trim($this->cluster->control('list_queues', 'name', 'leader'));
            self::assertSame(1, \preg_match('/^' . self::QUEUE . '\s+(\S+)$/m', $leader, $match), $leader);
            $names = \array_map(fn(int $node): string => $this->cluster->name($node), [1, 2, 3]);
            $node = 1 + (int) \array_search($match[1], $names, true);
            $seen = [];
            $receiving = async(static function () use ($receiver, &$seen): void {
                $consumer = $receiver->consume(self::QUEUE, 200);
                while (\count($seen) < self::TOTAL) {
                    foreach ($consumer->next(200, wait: 1.0) as $delivery) {
                        $seen[$delivery->body] = ($seen[$delivery->body] ?? 0) + 1;
                        $consumer->ack($delivery);
                    }
                }
                $consumer->close();
            });
            $confirmed = 0;
            $publishing = async(static function () use ($publisher, &$confirmed): void {
                foreach (\array_chunk(\range(1, self::TOTAL), self::CHUNK) as $numbers) {
                    $messages = \array_map(static fn(int $number): Outgoing => new Outgoing('number', (string) $number, [Header::MESSAGE_ID => "number-{$number}"], mustRoute: true), $numbers);
                    for ($sent = false; !$sent;) {
                        try {
                            $publisher->publish($messages);
                            $sent = true;
                        } catch (BusException) {
                            delay(0.1);
                        }
                    }
                    $confirmed += \count($numbers);
                }
            });
            while ($confirmed < self::TOTAL / 4) {
                delay(0.005);
            }
            $at = \count($seen);
            $this->cluster->kill($node);
            $publishing->await();
            $receiving->await();

            self::assertLessThan(self::TOTAL, $at, 'messages were under way');
            self::assertSame(self::TOTAL, $confirmed);
            self::assertCount(self::TOTAL, $seen, 'lost');
            self::assertSame(0, $receiver->depth(self::QUEUE));
            $publisher->close();
            $receiver->close();
        }, deadline: 240.0);
    }
}
