<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Amqp\Connection;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetter;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\Header;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\Setup;
use Weft\Bus\PublishException;
use Weft\Bus\QueueNotEmptyException;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Sqlite;
use Weft\Bus\UndefinedQueueException;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Bus\Fixtures\Withdraw;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** What Bus::queue() does with a queue. */
final class QueueTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    public static function buses(): iterable
    {
        yield 'memory' => [static fn(self $test, BusOptions $options): Bus => Bus::connect(new Memory(), options: $options)];
        yield 'SQLite' => [static fn(self $test, BusOptions $options): Bus => Bus::connect($test->dsn(), options: $options)];
        yield 'PostgreSQL' => [static fn(self $test, BusOptions $options): Bus => Bus::connect($test->databaseDsn(), $test->database(), $options)];
        yield 'RabbitMQ and PostgreSQL' => [static fn(self $test, BusOptions $options): Bus => Bus::connect($test->brokerDsn(), $test->database(), $options)];
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAQueueIsDeletedWithItsDeadLettersOnlyWhenItIsEmptyOrItIsSaid(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $bus->handlers(self::storing(static fn() => throw new \DomainException('no')));
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $bus->send(self::customer(1));
            self::drain($bus);
            $bus->send(self::customer(2));
            try {
                $queue->delete();
                self::fail('it has messages');
            } catch (QueueNotEmptyException $refused) {
                self::assertSame('Queue "customers" has 1 messages, 1 dead letters, 0 delayed retries and 0 messages behind blocked keys: consume them, or delete it with its messages', $refused->getMessage());
            }
            $queue->delete(withMessages: true);
            foreach ([$queue->depth(...), $queue->deadLetters()->count(...)] as $count) {
                try {
                    self::fail("it is gone, and has {$count()} messages");
                } catch (UndefinedQueueException) {
                }
            }
            $queue->delete();
            $queue->declare();
            self::assertSame([0, 0], [$queue->depth(), $queue->deadLetters()->count()]);
            $bus->send(self::customer(3));
            self::assertSame(1, $queue->depth(), 'it is bound again');
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAQueueWithDelayedRetriesIsDeletedOnlyWhenItIsSaidAndTheyAreGone(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $calls = 0;
            $bus->handlers(new class ($calls) {
                public function __construct(private int &$calls) {}

                #[CommandHandler]
                #[Retry(delayed: 1, delay: 60.0)]
                public function store(StoreCustomer $command): void
                {
                    $this->calls++;
                    throw new \RuntimeException('not yet');
                }
            });
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $bus->sendAll(self::customers(2));
            self::drain($bus);
            // Of another queue, and of none.
            $bus->queue('other')->declare();
            $bus->send(self::customer(3));
            $bus->consume('other', options: new ConsumeOptions(stopWhenEmpty: true));
            $bus->send(self::customer(4), new SendOptions(delay: 60.0));
            $queue->purge();
            self::assertSame([0, 0, 3], [$queue->depth(), $queue->deadLetters()->count(), $calls]);
            $delays = self::delays($bus);
            try {
                $queue->delete();
                self::fail('it has messages');
            } catch (QueueNotEmptyException $refused) {
                self::assertSame('Queue "customers" has 0 messages, 0 dead letters, 2 delayed retries and 0 messages behind blocked keys: consume them, or delete it with its messages', $refused->getMessage());
            }
            self::assertSame([2, 1], [$delays->retries(self::QUEUE), $delays->retries('other')]);
            $queue->delete(withMessages: true);

            self::assertSame([0, 1], [$delays->retries(self::QUEUE), $delays->retries('other')]);
            $queue->delete();
        });
    }

    public function testAQueueOfWhichOneHalfIsGoneIsNotDeletedWithTheMessagesOfTheOther(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect($this->brokerDsn())->handlers(self::storing(static fn() => throw new \DomainException('no')));
            $operator = Connection::connect($this->brokerDsn());
            $queue = $bus->queue(self::QUEUE);
            foreach ([self::QUEUE => [0, 1], self::QUEUE . '.dead' => [1, 0]] as $gone => $left) {
                $queue->declare();
                $bus->send(self::customer(1));
                self::drain($bus);
                $bus->send(self::customer(2));
                $operator->deleteQueue($gone);
                try {
                    $queue->delete();
                    self::fail("$gone is gone, and the other one has a message");
                } catch (QueueNotEmptyException $refused) {
                    self::assertStringContainsString("has {$left[0]} messages, {$left[1]} dead letters", $refused->getMessage());
                }
                $queue->delete(withMessages: true);
            }
            $operator->close();
        });
    }

    public function testAConsumerOfADeletedQueueForgetsItsBlockedKeys(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $handled = [];
            $bus = Bus::connect(new Memory(), $database)->handlers(new class ($handled) {
                public function __construct(private array &$handled) {}

                #[CommandHandler]
                #[Retry(delayed: 0, on: [\RuntimeException::class])]
                public function withdraw(Withdraw $command): void
                {
                    $this->handled[] = $command->number;
                    $command->number === 1 && throw new \RuntimeException('no');
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $consumer = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            $bus->sendAll([new Withdraw('bob', 1), new Withdraw('bob', 2)]);
            $waiting = static fn(): int => $database->execute('SELECT count(*) FROM weft_blocked_messages')->value();
            while ($waiting() === 0) {
                delay(0.005);
            }
            // What delete() does in another process.
            $database->execute('DELETE FROM weft_blocked_keys');
            $database->execute('DELETE FROM weft_blocked_messages');
            $bus->send(new Withdraw('bob', 3));
            while (\count($handled) < 2) {
                delay(0.005);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame([[1, 3], 0], [$handled, $waiting()]);
        });
    }

    public function testAQueueThatIsDeclaredAgainKnowsNoBlockedKeyOfTheOneThatWasDeleted(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $handled = [];
            $bus = Bus::connect(Sqlite::on($database), $database)->handlers(new class ($handled) {
                public function __construct(private array &$handled) {}

                #[CommandHandler]
                #[Retry(delayed: 0, on: [\RuntimeException::class])]
                public function withdraw(Withdraw $command): void
                {
                    $this->handled[] = $command->number;
                    $command->number === 1 && throw new \RuntimeException('no');
                }
            });
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $bus->sendAll(\array_map(static fn(int $number): Withdraw => new Withdraw('bob', $number), [1, 2, 3]));
            self::drain($bus);
            $queue->deadLetters()->delete(new DeadLetterFilter());
            self::assertSame([0, 0, 2], [$queue->depth(), $queue->deadLetters()->count(), $queue->blockedKeys()[0]->waiting]);
            try {
                $queue->delete();
                self::fail('messages wait for the key');
            } catch (QueueNotEmptyException $refused) {
                self::assertStringContainsString('0 delayed retries and 2 messages behind blocked keys', $refused->getMessage());
            }
            // Its broker has lost the queue; the messages behind the key are still a reason.
            self::transport($bus)->delete(self::QUEUE);
            try {
                $queue->delete();
                self::fail('messages wait for the key');
            } catch (QueueNotEmptyException) {
            }
            $queue->delete(withMessages: true);
            $queue->declare();
            $bus->send(new Withdraw('bob', 4));
            self::drain($bus);

            self::assertSame([[1, 4], [], 0], [$handled, $queue->blockedKeys(), $database->execute('SELECT count(*) FROM weft_blocked_messages')->value()]);
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testMessagesWithoutAHandlerReachAQueueThatIsBoundToThem(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $queue = $bus->handlers(self::storing(static fn() => null))->queue(self::QUEUE);
            $queue->declare();
            $bus->publish(new CustomerStored('1'));
            self::assertSame(0, $queue->depth());
            $queue->bind(CustomerStored::class, 'foreign.type');
            $bus->publish(new CustomerStored('2'));
            self::assertSame(1, $queue->depth());
        });
    }

    public function testADeadLetterThatCannotLeaveTheQueueOfDeadLettersIsNotInTheOtherOneEither(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $bus = Bus::connect(Sqlite::on($database), $database)->handlers(self::storing(static fn() => throw new \DomainException('no')));
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $id = $bus->send(self::customer(1));
            self::drain($bus);
            $database->execute("CREATE TRIGGER killed BEFORE DELETE ON weft_messages BEGIN SELECT RAISE(ABORT, 'killed'); END");
            foreach ([$queue->deadLetters()->retry(...), static fn() => $queue->deadLetters()->edit($id, '{}')] as $move) {
                try {
                    $move();
                    self::fail('the letter is still there');
                } catch (PublishException $failed) {
                    self::assertStringStartsWith('Cannot move a dead letter of "customers" to "customers', $failed->getMessage());
                }
            }
            $database->execute('DROP TRIGGER killed');

            self::assertSame([0, 1], [$queue->depth(), $queue->deadLetters()->count()]);
            self::assertSame([1, 1, 0], [$queue->deadLetters()->retry(), $queue->depth(), $queue->deadLetters()->count()]);
        });
    }

    public function testDeadLettersBehindOneThatTheBrokerRefusesAreRetried(): void
    {
        $this->inRuntime(function (): void {
            $transport = new SpyTransport(new Memory());
            $bus = Bus::connect($transport, options: new BusOptions(retry: new Retry()))->handlers(self::storing(static fn() => throw new \DomainException('no')));
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            $ids = [$bus->send(self::customer(1)), $bus->send(self::customer(2)), $bus->send(self::customer(3))];
            self::drain($bus);
            $transport->before = static function (string $what, array $messages) use ($ids): void {
                if ($what === 'put into customers' && $messages[0]->headers[Header::MESSAGE_ID] === $ids[1]) {
                    throw new PublishException('inequivalent header', refused: true);
                }
            };
            try {
                $queue->deadLetters()->retry();
                self::fail('one is refused');
            } catch (PublishException $refused) {
                self::assertStringContainsString("1 of 3 dead letters of \"customers\" could not be moved and stay: {$ids[1]}; the others were moved.", $refused->getMessage());
                self::assertStringContainsString('inequivalent header', $refused->getMessage());
                self::assertTrue($refused->refused);
            }
            self::assertSame([2, [$ids[1]]], [$queue->depth(), \array_map(static fn(DeadLetter $letter): string => $letter->messageId(), $queue->deadLetters()->peek())]);
            $bus->close();
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAPausedQueueIsNotConsumedUntilItIsResumed(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus, RecordingLogger $logger): void {
            $seen = [];
            $bus->handlers(self::storing(static function (StoreCustomer $command) use (&$seen, $bus): void {
                $seen[] = $command->id;
                // What has begun is finished.
                $command->id === '2' && $bus->queue(self::QUEUE)->pause();
                delay(0.01);
            }));
            $queue = $bus->queue(self::QUEUE);
            $queue->declare();
            self::assertSame([false, false], [$queue->isPaused(), $queue->resume()]);
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(limit: 5, prefetch: 1, signals: false)));
            $bus->sendAll(self::customers(5));
            self::until(static fn(): bool => $logger->hasRecord('notice', 'Queue {queue} is paused'));
            $before = \count($seen);
            self::assertTrue($queue->isPaused());
            self::assertSame(0, $bus->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true)));
            self::assertSame($before, \count($seen));
            self::assertLessThan(5, $before);

            self::assertTrue($queue->resume());
            self::assertSame(5, $consuming->await(), 'the limit counts what was handled before');
            self::assertSame(['1', '2', '3', '4', '5'], $seen);
        });
    }

    public function testAPauseHoldsForOtherProcessesAndAfterARestartAndAStopEndsTheWait(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $connect = fn(): Bus => Bus::connect('sqlite:' . $this->directory . '/queue.db', Database::connect('sqlite:' . $this->directory . '/queue.db'), new BusOptions(logger: $logger));
            $operator = $connect();
            $worker = $connect()->handlers(self::storing(static fn() => null));
            $operator->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $worker->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            self::until(fn(): bool => $operator->queue(self::QUEUE)->depth() === 0);
            $operator->queue(self::QUEUE)->pause();
            self::until(static fn(): bool => $logger->hasRecord('notice', 'Queue {queue} is paused'));
            $worker->send(self::customer(1));
            $worker->stop();
            self::assertSame(0, $consuming->await());
            $worker->close();

            $next = $connect()->handlers(self::storing(static fn() => null));
            $consuming = async(static fn(): int => $next->consume(self::QUEUE, options: new ConsumeOptions(limit: 1, signals: false)));
            $pauses = static fn(): int => \count(\array_filter($logger->of('notice'), static fn(array $record): bool => $record['message'] === 'Queue {queue} is paused'));
            self::until(static fn(): bool => $pauses() === 2);
            self::assertFalse($consuming->isDone());
            $operator->queue(self::QUEUE)->resume();
            self::assertSame(1, $consuming->await());
            self::assertTrue($logger->hasRecord('notice', 'Queue {queue} is resumed'));
            $next->close();
            $operator->close();
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAPauseEndsWithItsQueueAndIsLoggedWhereNothingIsConsumed(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus, RecordingLogger $logger): void {
            $queue = $bus->handlers(self::storing(static fn() => null))->queue(self::QUEUE);
            $queue->declare();
            $queue->pause();
            $bus->send(self::customer(1));
            self::assertSame(0, self::drain($bus));
            self::assertTrue($logger->hasRecord('notice', 'Queue {queue} is paused'));

            $queue->delete(withMessages: true);
            $queue->declare();
            $bus->send(self::customer(2));
            self::assertSame([false, 1], [$queue->isPaused(), self::drain($bus)]);
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAQueueThatIsNotDeclaredIsNotPaused(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            try {
                $bus->queue('customer')->pause();
                self::fail('there is none of that name');
            } catch (UndefinedQueueException $undefined) {
                self::assertStringContainsString('"customer"', $undefined->getMessage());
            }
            self::assertFalse($bus->queue('customer')->isPaused());
        });
    }

    public function testInvalidNamesOfQueuesAndTypesAreRefused(): void
    {
        $bus = Bus::connect('memory:');
        $bus->queue(self::QUEUE)->declare();
        $acts = [];
        foreach (['', "a\0b", "\xff", \str_repeat('x', 251)] as $name) {
            $acts[] = static fn() => $bus->queue($name);
            $acts[] = static fn() => $bus->queue(self::QUEUE)->bind($name);
        }
        foreach ($acts as $act) {
            try {
                $act();
                self::fail('the name is invalid');
            } catch (\ValueError $error) {
                self::assertMatchesRegularExpression('/^(A queue name must have 1 to 250|The name of a message type must have 1 to 200) bytes of UTF-8 without NUL, got "/', $error->getMessage());
            }
        }
    }

    public function testASignalEndsTheWaitForAResumption(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->queue(self::QUEUE)->pause();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            // One turn, and it waits for signals.
            delay(0.01);
            \posix_kill(\getmypid(), \SIGTERM);

            self::assertSame(0, $consuming->await());
        });
    }

    public function testPausingNeedsAPlaceThatAllProcessesSee(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect($this->brokerDsn());
            try {
                $this->expectException(\Error::class);
                $this->expectExceptionMessage('The queue "customers" cannot be paused: a pause holds for all processes and survives restarts, and the broker has no place for it. Pass a Database to Bus::connect()');
                $bus->queue(self::QUEUE)->pause();
            } finally {
                $bus->close();
            }
        });
    }

    private static function delays(Bus $bus): DelayStore
    {
        return self::setupOf($bus)->delays ?? self::fail('it has no delays');
    }

    private static function setupOf(Bus $bus): Setup
    {
        /** @var Setup */
        return (new \ReflectionProperty($bus, 'setup'))->getValue($bus);
    }

    private static function transport(Bus $bus): Transport
    {
        return self::setupOf($bus)->transport;
    }

    /** @param \Closure(): bool $condition */
    private static function until(\Closure $condition): void
    {
        while (!$condition()) {
            delay(0.01);
        }
    }

    /**
     * @param \Closure(self, BusOptions): Bus        $connect
     * @param \Closure(Bus, RecordingLogger): void $test
     */
    private function with(\Closure $connect, \Closure $test): void
    {
        $this->inRuntime(function () use ($connect, $test): void {
            $logger = new RecordingLogger();
            $bus = $connect($this, new BusOptions(logger: $logger));
            try {
                $test($bus, $logger);
            } finally {
                $bus->close();
            }
        });
    }
}
