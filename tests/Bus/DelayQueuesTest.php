<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\NotCancellableException;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

use function Weft\async;
use function Weft\delay;

/** Messages that wait in queues of RabbitMQ, since the bus has no database. */
final class DelayQueuesTest extends BusTestCase
{
    use Servers;

    public function testHundredsOfDelaysAreOnTimeAndOnceEach(): void
    {
        $this->inRuntime(function (): void {
            $late = [];
            $bus = Bus::connect($this->brokerDsn())->handlers(self::listening(static function (CustomerStored $event) use (&$late): void {
                [$id, $due] = \explode(' ', $event->id);
                $late[$id][] = \microtime(true) - (float) $due;
            }));
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            $bus->publish(new CustomerStored('hour 0'), new SendOptions(delay: 3600.0));
            $sending = \array_map(static fn(int $part): object => async(static function () use ($bus, $part): void {
                for ($id = $part; $id < 600; $id += 20) {
                    $seconds = \random_int(20, 3_000) / 1000;
                    $bus->publish(new CustomerStored($id . ' ' . (\microtime(true) + $seconds)), new SendOptions(delay: $seconds));
                }
            }), \range(0, 19));
            \array_map(static fn(object $task) => $task->await(), $sending);
            while (\count($late) < 600) {
                delay(0.01);
            }
            delay(0.3);
            $bus->stop();
            $consuming->await();
            $bus->close();

            self::assertSame(600, \array_sum(\array_map('count', $late)));
            $all = \array_merge(...$late);
            \sort($all);
            self::assertGreaterThan(-0.002, $all[0], 'none came too early');
            // The one before them leaves after an hour.
            self::assertLessThan(45.0, $all[\count($all) - 1]);
        });
    }

    public function testAMessageThatFailsAgainAndAgainComesBackAsOftenAsTheRuleSays(): void
    {
        $this->inRuntime(function (): void {
            $handler = new class {
                /** @var list<int> */
                public array $attempts = [];

                #[CommandHandler]
                #[Retry(delayed: 6, delay: 0.02, multiplier: 1.0, jitter: 0.0)]
                public function store(StoreCustomer $command, Context $context): void
                {
                    $this->attempts[] = $context->failedAttempts();
                    throw new \DomainException('no');
                }
            };
            $bus = Bus::connect($this->brokerDsn())->handlers($handler);
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            while ($bus->admin()->stats()->deadLettered === 0) {
                delay(0.01);
            }
            $bus->stop();
            $consuming->await();

            // RabbitMQ drops a message that comes by the same queue twice, had it still written on it that it was there.
            self::assertSame([0, 1, 2, 3, 4, 5, 6], $handler->attempts);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([], \array_filter(\array_keys($letter->headers), static fn(string $name): bool => \str_starts_with($name, 'x-')));
            $bus->close();
        });
    }

    public function testARetryBeyondTheLongestDelayWaitsForThat(): void
    {
        $this->inRuntime(function (): void {
            $calls = 0;
            $bus = Bus::connect($this->brokerDsn(), options: new BusOptions(retry: new Retry(delayed: 1, delay: 5e6, maxDelay: 9e9, jitter: 0.0)))
                ->handlers(self::storing(static function () use (&$calls): void {
                    $calls++;
                    throw new \RuntimeException('once a season');
                }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame([1, 1, 0], [$calls, $bus->admin()->stats()->retried, $bus->queue(self::QUEUE)->depth()]);
            self::assertSame(1, $bus->queue('weft.delay.8.7')->depth());
            $bus->close();
        });
    }

    public function testAMessageThatTheBrokerDoesNotTakeForARetryIsDeadLettered(): void
    {
        $this->inRuntime(function (): void {
            $calls = 0;
            $broker = RabbitMq::connect($this->brokerDsn());
            $bus = Bus::connect($broker, options: new BusOptions(retry: new Retry(delayed: 1, delay: 0.05)))->handlers(self::storing(static function () use (&$calls): void {
                $calls++;
                throw new \RuntimeException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            // The headers of a retry do not fit into a frame with it.
            $broker->publish([new Outgoing(StoreCustomer::class, '{"id":"1","name":"a","email":"b"}', ['message-id' => '7', 'theirs' => \str_repeat('x', 130_900)])]);
            self::drain($bus);

            self::assertSame([1, 0, 1], [$calls, $bus->admin()->stats()->retried, $bus->admin()->stats()->deadLettered]);
            self::assertSame('no', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());
            $bus->close();
        });
    }

    public function testOnlyTheQueueInWhichItFailedGetsItBack(): void
    {
        $this->inRuntime(function (): void {
            $fails = Bus::connect($this->brokerDsn(), options: new BusOptions(retry: new Retry(delayed: 1, delay: 0.05)))->handlers(self::listening(static function (): void {
                static $calls = 0;
                $calls++ === 0 && throw new class ('no') extends \RuntimeException implements \Weft\Bus\Recoverable {};
            }));
            $fails->queue('one')->declare();
            $other = Bus::connect($this->brokerDsn())->handlers(self::listening(static fn() => null));
            $other->queue('two')->declare();
            $fails->publish(new CustomerStored('1'));
            $consuming = async(static fn(): int => $fails->consume('one'));
            while ($fails->admin()->stats()->events === 0) {
                delay(0.01);
            }
            $fails->stop();
            $consuming->await();

            self::assertSame([1, 1], [$fails->admin()->stats()->retried, $other->queue('two')->depth()]);
            $fails->close();
            $other->close();
        });
    }

    public function testADueCommandWithoutAQueueWaitsInTheQueueForUnroutedMessages(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect(RabbitMq::connect($this->brokerDsn(), queue: RabbitMqQueue::quorum()));
            $bus->send(self::customer(1), new SendOptions(delay: 0.02));
            $bus->publish(new CustomerStored('an event may have no listener'), new SendOptions(delay: 0.02));
            while ($bus->queue('weft.unrouted')->depth() === 0) {
                delay(0.02);
            }
            delay(0.2);

            self::assertSame(1, $bus->queue('weft.unrouted')->depth());
            $bus->close();
        });
    }

    public function testOperationsThatNeedADatabaseAreRefusedByName(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect($this->brokerDsn());
            $id = $bus->publish(new CustomerStored('1'), new SendOptions(delay: 60.0));
            try {
                $bus->cancel($id);
                self::fail('cancelled');
            } catch (NotCancellableException $refused) {
                self::assertStringContainsString("{$id} cannot be cancelled", $refused->getMessage());
            }
            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage('by at most 4294967 seconds, got 49999');
            try {
                $bus->publish(new CustomerStored('1'), new SendOptions(delay: 5_000_000.0));
            } finally {
                $bus->close();
            }
        });
    }
}
