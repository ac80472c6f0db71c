<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\RabbitMq;
use Weft\Tests\Bus\Fixtures\Broker;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;

/** The bus on a RabbitMQ that is restarted, runs out of memory, or takes only small messages. */
final class BrokerFailureTest extends BusTestCase
{
    private const COMMANDS = 3_000;

    private static ?Broker $broker = null;

    public static function setUpBeforeClass(): void
    {
        self::$broker = new Broker();
    }

    public static function tearDownAfterClass(): void
    {
        self::$broker?->remove();
        self::$broker = null;
    }

    public function testConsumersGoOnAndNothingIsLostWhenTheBrokerIsRestarted(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $handled = [];
            $running = $most = 0;
            $transport = RabbitMq::connect(self::$broker->url);
            $bus = Bus::connect($transport, options: new BusOptions(logger: $log))->handlers(self::storing(static function (StoreCustomer $command) use (&$handled, &$running, &$most): void {
                $handled[$command->id] = ($handled[$command->id] ?? 0) + 1;
                $most = \max($most, ++$running);
                delay(0.03);
                $running--;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(self::COMMANDS));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 10, options: new ConsumeOptions(prefetch: 20)));
            while (\count($handled) < self::COMMANDS / 6) {
                delay(0.01);
            }

            $sending = async(static function () use ($bus): void {
                // Some of these are sent while there is no broker: they wait for it.
                foreach (\range(1, 50) as $number) {
                    $bus->send(self::customer("late-{$number}"));
                    delay(0.02);
                }
            });
            self::$broker->restart();
            $log->await('for consuming: recovered');
            $most = 0;
            self::assertStringContainsString("\t20\t", self::$broker->control('list_consumers', 'queue_name', 'prefetch_count', 'active'), 'the prefetch is what it was');
            $sending->await();
            // A busy machine may have handled all of the others before the broker was down.
            $bus->sendAll(\array_map(static fn(int $number): StoreCustomer => self::customer("after-{$number}"), \range(1, 200)));
            while (\count($handled) < self::COMMANDS + 250) {
                delay(0.01);
            }
            $bus->stop();
            $consuming->await();

            self::assertLessThanOrEqual(20 + 1, \array_sum($handled) - \count($handled), 'only what was delivered, or sent, without an answer comes again');
            self::assertSame(10, $most, 'as many handlers at a time as before');
            self::assertSame([0, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $log->await('for publishing: disconnected');
            $log->await('for publishing: recovered');
            $log->await('warning RabbitMQ connection for consuming: disconnected');
            $bus->close();
        }, deadline: 240.0);
    }

    public function testABrokerThatIsShortOfMemoryIsLoggedAndPublishingWaitsForIt(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $handled = 0;
            $bus = Bus::connect(self::$broker->url, options: new BusOptions(logger: $log))->handlers(self::storing(static function () use (&$handled): void {
                $handled++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            $bus->send(self::customer($sent = 1));
            while ($handled === 0) {
                delay(0.01);
            }
            $sending = async(static function () use ($bus, $log, &$sent): void {
                // The broker looks at its memory now and then, and tells those who publish as soon as they do.
                while (!$log->has('blocked')) {
                    $bus->send(self::customer(++$sent));
                    delay(0.02);
                }
            });
            self::$broker->control('set_vm_memory_high_watermark', 'absolute', '1');
            try {
                $log->await('warning RabbitMQ connection for publishing: blocked');
            } finally {
                self::$broker->control('set_vm_memory_high_watermark', '0.4');
            }
            $log->await('notice RabbitMQ connection for publishing: unblocked');
            $sending->await();
            while ($handled < $sent) {
                delay(0.01);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame($sent, $handled);
            $bus->close();
        }, deadline: 240.0);
    }

    public function testConsumersCanBeStartedToEmptyABrokerThatIsShortOfMemory(): void
    {
        $this->inRuntime(function (): void {
            $handled = 0;
            $broker = RabbitMq::connect(self::$broker->url);
            $bus = Bus::connect($broker)->handlers(self::storing(static function () use (&$handled): void {
                $handled++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::$broker->control('set_vm_memory_high_watermark', 'absolute', '1');
            try {
                $blocked = async(static fn() => $bus->send(self::customer(2)));
                while ($broker->status()['publishing'][0] !== 'blocked') {
                    delay(0.01);
                }
                self::assertSame(1, $bus->consume(self::QUEUE, options: new ConsumeOptions(limit: 1)));
            } finally {
                self::$broker->control('set_vm_memory_high_watermark', '0.4');
            }
            $blocked->await();
            self::drain($bus);
            self::assertSame(2, $handled);
            $bus->close();
        }, deadline: 240.0);
    }

    public function testAMessageAboveTheBrokersLimitIsRefusedAndOthersPass(): void
    {
        $this->inRuntime(function (): void {
            $handled = [];
            $bus = Bus::connect(self::$broker->url)->handlers(self::storing(static function (StoreCustomer $command) use (&$handled): void {
                $handled[] = $command->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            self::$broker->control('eval', 'application:set_env(rabbit, max_message_size, 1000000), persistent_term:put(max_message_size, 1000000).');
            try {
                $bus->send(new StoreCustomer('large', \str_repeat('x', 10_000_000), 'name@example.org'));
                self::fail('It was sent');
            } catch (PublishException $failed) {
                self::assertStringContainsString('max', $failed->getMessage());
                self::assertStringContainsString('1000000', $failed->getMessage());
            } finally {
                self::$broker->control('eval', 'application:set_env(rabbit, max_message_size, 134217728), persistent_term:put(max_message_size, 134217728).');
            }
            $bus->send(self::customer('small'));

            self::drain($bus);
            self::assertSame(['small'], $handled);
            $bus->close();
        }, deadline: 240.0);
    }
}
