<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Weft\Bus\AlreadyScheduledException;
use Weft\Bus\Batch;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\DelayedMessageCancelled;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Cron;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Persistence\Schedules;
use Weft\Bus\Internal\Persistence\TablePublisher;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Bus\Internal\Sending\BodyStore;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Bus\Internal\Setup;
use Weft\Bus\PublishException;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;

/** Messages that leave later, and those that come again and again. */
class DelayTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    /** Until a schedule that has failed is tried again, which a busy machine may reach. */
    private const SCHEDULE_RETRY_SECONDS = 10.0;

    public static function buses(): iterable
    {
        yield 'memory, no database' => [static fn(self $test, ?BusOptions $options = null): Bus => Bus::connect(new Memory(), options: $options ?? new BusOptions())];
        yield 'SQLite' => [static fn(self $test, ?BusOptions $options = null): Bus => Bus::connect(Sqlite::connect($test->dsn()), options: $options ?? new BusOptions())];
        yield 'RabbitMQ and PostgreSQL' => [static fn(self $test, ?BusOptions $options = null): Bus => Bus::connect($test->brokerDsn(), $test->database(), $options ?? new BusOptions())];
        yield 'PostgreSQL' => [static fn(self $test, ?BusOptions $options = null): Bus => Bus::connect($test->databaseDsn(), $test->database(), $options ?? new BusOptions())];
    }

    public static function busesAndDelayQueues(): iterable
    {
        yield from self::buses();
        yield 'RabbitMQ alone' => [static fn(self $test): Bus => Bus::connect($test->brokerDsn())];
        yield 'RabbitMQ alone, quorum queues' => [static fn(self $test): Bus => Bus::connect(RabbitMq::connect($test->brokerDsn(), queue: RabbitMqQueue::quorum()))];
    }

    /** @dataProvider busesAndDelayQueues */
    #[DataProvider('busesAndDelayQueues')]
    public function testHeadersWhoseNameOrValueBeginsWithNulArrive(\Closure $connect): void
    {
        $this->inRuntime(function () use ($connect): void {
            $headers = ["\0name" => "\0value", 'name' => "\0", "\0" => 'value', "\0*\0name" => ''];
            $received = [];
            $bus = $connect($this)->handlers(self::listening(static function (CustomerStored $event, Context $context) use (&$received, $headers): void {
                $received[$event->id] = \array_intersect_key($context->headers(), $headers);
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('now'), new SendOptions(headers: $headers));
            $bus->publishAll([new CustomerStored('first'), new CustomerStored('second')], new SendOptions(headers: $headers));
            $bus->publish(new CustomerStored('later'), new SendOptions(delay: 0.01, headers: $headers));
            while (\count($received) < 4) {
                self::drain($bus);
                delay(0.005);
            }
            foreach ($received as $id => $kept) {
                self::assertEqualsCanonicalizing($headers, $kept, $id);
                self::assertEqualsCanonicalizing(\array_keys($headers), \array_keys($kept), $id);
            }
            $bus->close();
        });
    }

    /** @dataProvider busesAndDelayQueues */
    #[DataProvider('busesAndDelayQueues')]
    public function testAShortDelayBehindALongOneIsOnTime(\Closure $connect): void
    {
        $this->consuming($connect, function (Bus $bus, \ArrayObject $heard): void {
            $bus->publish(new CustomerStored('an hour'), new SendOptions(delay: 3600.0));
            $sent = \microtime(true);
            $bus->publish(new CustomerStored('now'));
            $bus->publish(new CustomerStored('long'), new SendOptions(delay: 2.0));
            $bus->publish(new CustomerStored('short'), new SendOptions(at: new \DateTimeImmutable('+300 milliseconds')));
            // The deadline of the test is far below the hour.
            self::until(static fn(): bool => \count($heard) === 3);

            self::assertSame(['now', 'short', 'long'], \array_keys($heard->getArrayCopy()));
            self::assertGreaterThanOrEqual(0.3, $heard['short'] - $sent);
            self::assertGreaterThanOrEqual(2.0, $heard['long'] - $sent);
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAMessageIsCancelledByItsIdUntilItHasLeft(\Closure $connect): void
    {
        $this->consuming($connect, function (Bus $bus, \ArrayObject $heard): void {
            // Long enough for a busy machine to cancel it, and due before the last one.
            $cancelled = $bus->publish(new CustomerStored('cancelled'), new SendOptions(delay: 3.0));
            $left = $bus->publish(new CustomerStored('left'), new SendOptions(delay: 0.05));
            self::assertTrue($bus->cancel($cancelled));
            self::assertFalse($bus->cancel($cancelled));
            $bus->publish(new CustomerStored('last'), new SendOptions(delay: 3.1));
            self::until(static fn(): bool => isset($heard['last']));

            self::assertSame(['left', 'last'], \array_keys($heard->getArrayCopy()));
            self::assertFalse($bus->cancel($left));
            self::assertFalse($bus->cancel('no id of anything'));
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testADelayedMessageWithAnIdOfItsOwnIsThereOnceAndCancelledByIt(\Closure $connect): void
    {
        $this->consuming($connect, function (Bus $bus, \ArrayObject $heard): void {
            $later = new SendOptions(delay: 3600.0, id: 'reminder-42');
            self::assertSame('reminder-42', $bus->publish(new CustomerStored('first'), $later));
            try {
                $bus->publish(new CustomerStored('second'), $later);
                self::fail('it is waiting already');
            } catch (AlreadyScheduledException $refused) {
                self::assertStringContainsString('"reminder-42" is waiting already', $refused->getMessage());
            }
            self::assertTrue($bus->cancel('reminder-42', 'the customer has called'));
            self::assertFalse($bus->cancel('reminder-42', 'again'));
            $bus->publish(new CustomerStored('third'), new SendOptions(delay: 0.01, id: 'reminder-42'));
            self::until(static fn(): bool => \count($heard) === 1);
            // Its row may be deleted a moment after its delivery.
            self::until(static function () use ($bus): bool {
                try {
                    return $bus->publish(new CustomerStored('fourth'), new SendOptions(delay: 0.01, id: 'reminder-42')) !== '';
                } catch (AlreadyScheduledException) {
                    return false;
                }
            });
            self::until(static fn(): bool => \count($heard) === 2);

            self::assertSame(['third', 'fourth'], \array_keys($heard->getArrayCopy()), 'an id is free again once its message has left');
        });
    }

    public function testTheReasonOfACancellationIsPublished(): void
    {
        $this->inRuntime(function (): void {
            $reasons = [];
            $bus = Bus::connect('memory:')->handlers(new class (static function (DelayedMessageCancelled $event) use (&$reasons): void {
                $reasons[$event->id] = $event->reason;
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                public function cancelled(DelayedMessageCancelled $event): void
                {
                    ($this->note)($event);
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $ids = [];
            foreach (['told', 'silent'] as $name) {
                $ids[] = $bus->publish(new CustomerStored($name), new SendOptions(delay: 3600.0));
            }
            self::assertSame([true, true, false], [$bus->cancel($ids[0], 'no longer needed'), $bus->cancel($ids[1]), $bus->cancel('unknown', 'why not')]);
            self::drain($bus);

            self::assertSame([$ids[0] => 'no longer needed'], $reasons);
        });
    }

    public function testACancellationInAHandlerIsPartOfItsTransaction(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:?transaction_timeout=2');
            $bus = Bus::connect('memory:', $database);
            $cancelled = new \ArrayObject();
            $bus->handlers(new class ($bus, $cancelled) {
                public function __construct(private readonly Bus $bus, private readonly \ArrayObject $cancelled) {}

                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $transaction->execute('SELECT 1')->value();
                    $this->cancelled[] = $this->bus->cancel($command->name);
                    $this->cancelled[] = $this->bus->cancel($command->name);
                    $command->id === '2' || throw new \LogicException('no');
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $id = $bus->publish(new CustomerStored('later'), new SendOptions(delay: 3600.0));
            $bus->send(new StoreCustomer('1', $id, ''));
            self::drain($bus);
            self::assertSame([[true, false], 1], [$cancelled->getArrayCopy(), $bus->admin()->backlog()['delayed']]);
            $bus->send(new StoreCustomer('2', $id, ''));
            self::drain($bus);

            self::assertSame([[true, false, true, false], 0], [$cancelled->getArrayCopy(), $bus->admin()->backlog()['delayed']]);
        });
    }

    /** @dataProvider scheduling */
    #[DataProvider('scheduling')]
    public function testAHandlerCancelsWhatItHasScheduledItself(\Closure $make): void
    {
        $this->inRuntime(function () use ($make): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database);
            $cancelled = [];
            $bus->handlers($make(static function (Context $context) use ($bus, &$cancelled): void {
                foreach ([null, 'named'] as $id) {
                    $scheduled = $context->publish(new CustomerStored('later'), new SendOptions(delay: 3600.0, id: $id));
                    \array_push($cancelled, $bus->cancel($scheduled), $bus->cancel($scheduled));
                }
                $scheduled = $bus->publish(new CustomerStored('later'), new SendOptions(delay: 3600.0));
                $cancelled[] = $bus->cancel($scheduled);
                $bus->publish(new CustomerStored('kept'), new SendOptions(delay: 3600.0));
            }))->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame([true, false, true, false, true], $cancelled);
            self::assertSame(['{"id":"kept"}'], $database->execute('SELECT body FROM weft_delayed')->column());
            $database->close();
        });
    }

    public function testAMessageThatIsCancelledInASavepointThatIsRolledBackIsKept(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database);
            $bus->handlers(new class ($bus) {
                public function __construct(private readonly Bus $bus) {}

                #[CommandHandler]
                public function store(StoreCustomer $command, Context $context, Transaction $transaction): void
                {
                    $first = $context->publish(new CustomerStored('kept'), new SendOptions(delay: 3600.0));
                    try {
                        $transaction->transaction(function () use ($context, $first): void {
                            $this->bus->cancel($first);
                            // Sent and cancelled in there: it was never sent.
                            $this->bus->cancel($context->publish(new CustomerStored('gone'), new SendOptions(delay: 3600.0)));
                            throw new \DomainException();
                        });
                    } catch (\DomainException) {
                    }
                }
            })->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame(['{"id":"kept"}'], $database->execute('SELECT body FROM weft_delayed')->column());
            $database->close();
        });
    }

    /** @dataProvider scheduling */
    #[DataProvider('scheduling')]
    public function testAHandlerCatchesThatAnIdIsScheduledAlready(\Closure $make): void
    {
        $this->inRuntime(function () use ($make): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database);
            $refused = [];
            $bus->handlers($make(static function (Context $context) use (&$refused): void {
                foreach (['new', 'new', 'taken'] as $id) {
                    try {
                        $context->publish(new CustomerStored($id), new SendOptions(delay: 3600.0, id: $id));
                    } catch (AlreadyScheduledException $exception) {
                        $refused[] = $exception->getMessage();
                    }
                }
            }))->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('first'), new SendOptions(delay: 3600.0, id: 'taken'));
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame(['A delayed message with the id "new" is waiting already', 'A delayed message with the id "taken" is waiting already'], $refused);
            self::assertEqualsCanonicalizing(['{"id":"new"}', '{"id":"first"}'], $database->execute('SELECT body FROM weft_delayed')->column());
            self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count());
            $database->close();
        });
    }

    public static function scheduling(): iterable
    {
        yield 'with a transaction' => [static fn(\Closure $handle): object => new class ($handle) {
            public function __construct(private readonly \Closure $handle) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Context $context, Transaction $transaction): void
            {
                ($this->handle)($context);
            }
        }];
        yield 'without a transaction' => [static fn(\Closure $handle): object => self::storing(static fn(StoreCustomer $command, Context $context) => $handle($context))];
        yield 'a batch' => [static fn(\Closure $handle): object => new class ($handle) {
            public function __construct(private readonly \Closure $handle) {}

            #[CommandHandler, Batch(of: StoreCustomer::class)]
            public function store(array $items, Transaction $transaction): void
            {
                foreach ($items as $item) {
                    ($this->handle)($item->context);
                }
            }
        }];
    }

    public function testAHandlerThatSchedulesAnIdAgainIsDeadLetteredAtOnce(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $bus = Bus::connect($this->brokerDsn(), $database)->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Context $context, Transaction $transaction): void
                {
                    $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$command->id]);
                    $context->publish(new CustomerStored($command->id), new SendOptions(delay: 3600.0, id: 'once'));
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);
            $bus->send(self::customer(2));
            self::drain($bus);

            self::assertSame(AlreadyScheduledException::class, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorClass());
            self::assertSame(['1'], \array_column($database->execute('SELECT id FROM effects')->rows(), 'id'));
            $database->close();
        });
    }

    /** @dataProvider busesAndDelayQueues */
    #[DataProvider('busesAndDelayQueues')]
    public function testATimeThatIsOverMeansNow(\Closure $connect): void
    {
        $this->consuming($connect, function (Bus $bus, \ArrayObject $heard): void {
            $bus->publish(new CustomerStored('past'), new SendOptions(at: new \DateTimeImmutable('2001-01-01')));
            $bus->publish(new CustomerStored('none'), new SendOptions(delay: 0.0));
            self::until(static fn(): bool => \count($heard) === 2);

            self::assertSame(['past', 'none'], \array_keys($heard->getArrayCopy()));
        });
    }

    /** @dataProvider farTimes */
    #[DataProvider('farTimes')]
    public function testATimeThatIsFarAwayIsNotDue(string $at): void
    {
        $this->inRuntime(static function () use ($at): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database)->handlers(self::storing(static fn() => self::fail('it is due')));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1), new SendOptions(at: new \DateTimeImmutable($at), expires: 1.0));
            $bus->consume(self::QUEUE, options: new ConsumeOptions(stopAfter: 0.6));

            self::assertSame([0, '253402300799999', 253_402_300_799_999], [
                $bus->admin()->stats()->expired,
                \json_decode($database->execute('SELECT headers FROM weft_delayed')->value(), true)['weft-expires-at'],
                $database->execute('SELECT due FROM weft_delayed')->value(),
            ]);
        });
    }

    /** @return iterable<string, array{string}> */
    public static function farTimes(): iterable
    {
        yield 'more milliseconds than an integer has' => ['@92233720368547758'];
        yield 'a year of six digits' => ['+250000-01-01'];
    }

    public function testADelayedMessageOfAHandlerIsRolledBackWithItsTransaction(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $bus = Bus::connect($this->brokerDsn(), $database)->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
                {
                    $context->publish(new CustomerStored($command->id), new SendOptions(delay: 60.0));
                    if ($command->id === '1') {
                        throw new \DomainException('no');
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2));
            self::drain($bus);

            self::assertSame(['{"id":"2"}'], $database->execute('SELECT body FROM weft_delayed')->column());
            $bus->close();
            $database->close();
        });
    }

    public function testThousandsOfDelayedMessagesArriveOnceAndOnTimeThoughSeveralWorkersLook(): void
    {
        $this->inRuntime(function (): void {
            $late = [];
            $handler = self::listening(static function (CustomerStored $event) use (&$late): void {
                [$id, $due] = \explode(' ', $event->id);
                $late[$id][] = \microtime(true) - (float) $due;
            });
            $buses = \array_map(fn(): Bus => Bus::connect($this->brokerDsn(), $this->database())->handlers($handler), [1, 2, 3]);
            $buses[0]->queue(self::QUEUE)->declare();
            $consuming = \array_map(static fn(Bus $bus): object => async(static fn(): int => $bus->consume(self::QUEUE)), $buses);
            for ($id = 0; $id < 1_000; $id++) {
                $seconds = \random_int(100, 2_000) / 1000;
                $buses[$id % 3]->publish(new CustomerStored($id . ' ' . (\microtime(true) + $seconds)), new SendOptions(delay: $seconds));
            }
            self::until(static function () use (&$late): bool {
                return \count($late) === 1_000;
            });
            foreach ($buses as $index => $bus) {
                $bus->stop();
                $consuming[$index]->await();
                $bus->close();
            }

            self::assertSame(1_000, \array_sum(\array_map('count', $late)));
            self::assertGreaterThan(-0.002, \min(\array_merge(...$late)), 'none came too early');
            self::assertLessThan(45.0, \max(\array_merge(...$late)));
        });
    }

    public function testAScheduleFiresOnceEachTimeHoweverManyWorkersThereAre(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $heard = 0;
            $handler = self::storing(static function () use (&$heard): void {
                $heard++;
            });
            $buses = \array_map(fn(): Bus => Bus::connect($this->brokerDsn(), $this->database())->handlers($handler)
                ->schedule('customers', '* * * * *', static fn(): StoreCustomer => self::customer(1)), [1, 2, 3]);
            $buses[0]->queue(self::QUEUE)->declare();
            $minute = \intdiv(\time(), 60);
            // As if nobody had been there for an hour.
            $database->execute("INSERT INTO weft_schedules (name, rule, due) VALUES ('customers', '* * * * * UTC', ?)", [\time() - 3600]);
            $consuming = \array_map(static fn(Bus $bus): object => async(static fn(): int => $bus->consume(self::QUEUE)), $buses);
            self::until(static function () use (&$heard): bool {
                return $heard > 0;
            });
            delay(0.6);
            foreach ($buses as $index => $bus) {
                $bus->stop();
                $consuming[$index]->await();
                $bus->close();
            }

            $due = $database->execute('SELECT due FROM weft_schedules')->value();
            self::assertGreaterThan(60 * $minute, $due, 'all that was missed is made up for');
            self::assertLessThanOrEqual(\time() + 1, $due);
            self::assertLessThanOrEqual(1 + \intdiv(\time(), 60) - $minute, $heard, 'one for the hour that was missed, and one should a minute have begun since');
            $database->close();
        });
    }

    public function testAWorkerThatStopsWhileItSendsWhatIsDueLeavesNothingToSendAgain(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $broker = new SpyTransport(new Memory());
            $bus = Bus::connect($broker, $database)->handlers(self::storing(static function (): void {}));
            $bus->queue(self::QUEUE)->declare();
            $broker->before = static function (string $what) use ($bus): void {
                if ($what === 'publish') {
                    $bus->stop();
                    delay(0.1);
                }
            };
            $bus->send(self::customer(1), new SendOptions(delay: 0.05));
            $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false));

            self::assertSame([1, 0], [$bus->queue(self::QUEUE)->depth(), $database->execute('SELECT count(*) FROM weft_delayed')->value()]);
            $bus->close();
            $database->close();
        });
    }

    public function testAMessageThatIsBeingPublishedCannotBeCancelled(): void
    {
        $this->inRuntime(function (): void {
            $broker = new SpyTransport(new Memory());
            $bus = Bus::connect($broker, Database::connect($this->dsn()))->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $id = $bus->send(self::customer(1), new SendOptions(delay: 0.05));
            $answers = [];
            $broker->before = static function (string $what) use ($bus, $broker, $id, &$answers): void {
                if ($what === 'publish') {
                    $answers[] = async(static fn(): bool => $bus->cancel($id))->await();
                    if (\count($answers) === 1) {
                        throw new PublishException('the broker was removed');
                    }
                }
            };
            delay(0.06);
            try {
                $bus->admin()->releaseDue();
                self::fail('the broker was there');
            } catch (PublishException) {
            }
            $bus->admin()->releaseDue();

            self::assertSame([[false, false], 1, false], [$answers, $bus->queue(self::QUEUE)->depth(), $bus->cancel($id)]);
            $other = $bus->send(self::customer(2), new SendOptions(delay: 0.05));
            delay(0.06);
            self::assertTrue($bus->cancel($other), 'due, and nobody has come for it');
            $bus->close();
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testARetryWhoseQueueIsGoneDelaysNoOtherMessage(\Closure $connect): void
    {
        $this->inRuntime(function () use ($connect): void {
            $log = new RecordingLogger();
            $stored = 0;
            $heard = 0;
            $bus = $connect($this, new BusOptions(logger: $log))->handlers(new class ($stored) {
                public function __construct(private int &$stored) {}

                #[CommandHandler]
                #[Retry(delayed: 1, delay: 1.0, jitter: 0.0)]
                public function store(StoreCustomer $command): void
                {
                    ++$this->stored === 1 && throw new \DomainException('not yet');
                }
            }, self::listening(static function () use (&$heard): void {
                $heard++;
            }));
            $bus->queue('gone')->declare();
            $bus->send(self::customer(1));
            $bus->consume('gone', options: new ConsumeOptions(limit: 1));
            // Behind the bus's back, as with the broker's own tools.
            self::transport($bus)->delete('gone');
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'), new SendOptions(delay: 1.5));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            self::until(static function () use (&$heard): bool {
                return $heard > 0;
            });
            $bus->stop();
            $consuming->await();
            $bus->close();

            self::assertSame(1, $stored);
            self::assertFalse($log->has('background task'), \implode("\n", $log->lines));
        });
    }

    public function testARetryWhoseQueueIsGoneStaysUntilTheQueueIsBack(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = $this->database();
            $bus = Bus::connect($this->brokerDsn(), $database, new BusOptions(logger: $log))->handlers(self::storing(static fn() => null));
            $delayed = new DelayedMessages($database, self::transport($bus), $log);
            (new Migrator($database))->ensure(Tables::component());
            foreach (['1', '2'] as $id) {
                $delayed->storeRetry(new Outgoing(StoreCustomer::class, "{\"id\":\"{$id}\",\"name\":\"a\",\"email\":\"b\"}", [Header::MESSAGE_ID => $id, Header::KIND => 'command']), self::QUEUE, 0.0);
            }
            self::assertSame(0, $delayed->release());
            self::assertSame(['error 2 messages for queue "customers" could not be published and stay in weft_delayed: '], \array_map(static fn(string $line): string => \preg_replace('~(?<=weft_delayed: ).*~', '', $line), $log->lines));
            self::assertStringContainsString('Queue "customers" is not declared', $log->lines[0]);
            self::assertGreaterThan(\microtime(true), $delayed->next(), 'they are tried again later');

            $bus->queue(self::QUEUE)->declare();
            $database->execute('UPDATE weft_delayed SET due = 1');
            self::assertSame([2, 2, null], [$delayed->release(), $bus->queue(self::QUEUE)->depth(), $delayed->next()]);
            $bus->close();
            $database->close();
        });
    }

    public function testARetryThatTheBrokerCannotTakeDelaysNoOtherMessage(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = $this->database();
            $bus = Bus::connect($this->brokerDsn(), $database, new BusOptions(logger: $log))->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $delayed = new DelayedMessages($database, self::transport($bus), $log);
            foreach (['1' => 10, '2' => 140_000, '3' => 10] as $id => $bytes) {
                $delayed->storeRetry(new Outgoing(StoreCustomer::class, '{}', [Header::MESSAGE_ID => "id {$id}", 'note' => \str_repeat('n', $bytes)]), self::QUEUE, 0.0);
            }
            self::assertSame(2, $delayed->release());

            self::assertStringStartsWith('id 2@', $database->execute('SELECT id FROM weft_delayed')->value());
            self::assertTrue($log->hasRecord('error', 'could not be published and stays in {table}'));
            self::assertGreaterThan(\microtime(true), $delayed->next());
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testLargeMessagesAreReadAFewAtATime(\Closure $connect): void
    {
        $this->inRuntime(function () use ($connect): void {
            $database = $connect($this);
            (new Migrator($database))->ensure(Tables::component());
            $broker = new SpyTransport(new Memory());
            $broker->declare(self::QUEUE, [StoreCustomer::class]);
            $batches = [];
            $broker->before = static function (string $what, array $messages) use (&$batches): void {
                $batches[] = \array_map(static fn(Outgoing $message): string => $message->headers[Header::MESSAGE_ID], $messages);
            };
            $delayed = new DelayedMessages($database, $broker, new NullLogger());
            // 1.5 MiB each, one of 5 MiB, and many small ones.
            $bytes = [...\array_fill(0, 5, 3 << 19), 5 << 20, ...\array_fill(0, 20, 10)];
            foreach ($bytes as $index => $size) {
                $delayed->store(new Outgoing(StoreCustomer::class, \str_repeat('x', $size), [Header::MESSAGE_ID => "id {$index}"]), $index / 1000 + 1);
            }
            self::assertSame(26, $delayed->release());

            self::assertSame(\array_map(static fn(int $index): string => "id {$index}", \array_keys($bytes)), \array_merge(...$batches), 'in order');
            self::assertSame([2, 2, 1, 1, 20], \array_map('count', $batches));
            self::assertSame([26, null], [$broker->depth(self::QUEUE), $delayed->next()]);
            $database->close();
        });
    }

    /** @return iterable<string, array{\Closure(self): Database}> */
    public static function databases(): iterable
    {
        yield 'SQLite' => [static fn(self $test): Database => Database::connect($test->dsn())];
        yield 'a server' => [static fn(self $test): Database => $test->database()];
    }

    public function testFewerMessagesAreTriedAfterABatchThatTookTooLong(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            (new Migrator($database))->ensure(Tables::component());
            $broker = new SpyTransport(new Memory());
            $broker->declare(self::QUEUE, [StoreCustomer::class]);
            // As a broker that takes 100 messages in time.
            $broker->before = static function (string $what, array $messages): void {
                \count($messages) > 100 && delay(60.0);
            };
            $delayed = new DelayedMessages($database, $broker, new NullLogger());
            for ($id = 1; $id <= 500; $id++) {
                $delayed->store(new Outgoing(StoreCustomer::class, '{}', [Header::MESSAGE_ID => "id {$id}"]), 1.0);
            }
            $publisher = new TablePublisher($database, $broker, new NullLogger(), 'weft_delayed', cancellable: true, timeout: 1.0);
            $late = 0;
            do {
                try {
                    $hasMore = $publisher->carry('due <= ?', [2_000], 'due')->hasMore;
                } catch (PublishException $exception) {
                    $hasMore = true;
                    $late++;
                    self::assertStringEndsWith('messages of weft_delayed could not be published within 1 seconds; they stay in the table, and fewer are tried next', $exception->getMessage());
                }
            } while ($hasMore);

            self::assertSame(500, $broker->depth(self::QUEUE));
            self::assertGreaterThan(1, $late);
            $database->close();
        });
    }

    /** @dataProvider brokenSchedules */
    #[DataProvider('brokenSchedules')]
    public function testAScheduleThatMakesNoCommandHoldsUpNothingElse(\Closure $broken): void
    {
        $this->inRuntime(function () use ($broken): void {
            $log = new RecordingLogger();
            $database = Database::connect($this->dsn());
            $heard = [];
            $bus = Bus::connect(new Memory(), $database, new BusOptions(logger: $log))->handlers(self::storing(static function (StoreCustomer $command) use (&$heard): void {
                $heard[] = $command->id;
            }));
            $bus->schedule('broken', '* * * * *', $broken);
            $bus->schedule('sound', '* * * * *', static fn(): StoreCustomer => self::customer('sound'));
            $bus->queue(self::QUEUE)->declare();
            foreach (['broken', 'sound'] as $name) {
                $database->execute("INSERT INTO weft_schedules (name, rule, due) VALUES (?, '* * * * * UTC', ?)", [$name, \time() - 30]);
            }
            $bus->send(self::customer('delayed'), new SendOptions(delay: 0.3));
            $began = \hrtime(true);
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            self::until(static function () use (&$heard): bool {
                return \count(\array_unique($heard)) > 1;
            });
            delay(0.6);
            $bus->stop();
            $consuming->await();

            self::assertEqualsCanonicalizing(['delayed', 'sound'], \array_values(\array_unique($heard)));
            $told = \array_filter($log->lines, static fn(string $line): bool => \str_contains($line, 'no such report'));
            self::assertLessThanOrEqual(1 + (\hrtime(true) - $began) / 1e9 / self::SCHEDULE_RETRY_SECONDS, \count($told), 'not again at every look');
            self::assertStringContainsString('"broken"', \implode($told));
            self::assertLessThan(\time(), $database->execute("SELECT due FROM weft_schedules WHERE name = 'broken'")->value(), 'it still has its turn');
            $bus->close();
            $database->close();
        });
    }

    public function testAScheduleThatTheDatabaseRefusesHoldsUpNothingElse(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = Database::connect($this->dsn());
            $heard = [];
            $bus = Bus::connect(new Memory(), $database, new BusOptions(logger: $log))->handlers(self::storing(static function (StoreCustomer $command) use (&$heard): void {
                $heard[] = $command->id;
            }));
            $bus->schedule('refused', '* * * * *', static fn(): StoreCustomer => self::customer('refused'));
            $bus->schedule('sound', '* * * * *', static fn(): StoreCustomer => self::customer('sound'));
            $bus->queue(self::QUEUE)->declare();
            $database->execute("CREATE TRIGGER refuse BEFORE UPDATE ON weft_schedules WHEN NEW.name = 'refused' BEGIN SELECT RAISE(ABORT, 'no such row'); END");
            foreach (['refused', 'sound'] as $name) {
                $database->execute("INSERT INTO weft_schedules (name, rule, due) VALUES (?, '* * * * * UTC', ?)", [$name, \time() - 30]);
            }
            $bus->send(self::customer('delayed'), new SendOptions(delay: 0.1));
            $began = \hrtime(true);
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            self::until(static function () use (&$heard): bool {
                return \count(\array_unique($heard)) > 1;
            });
            $bus->stop();
            $consuming->await();

            self::assertEqualsCanonicalizing(['delayed', 'sound'], \array_values(\array_unique($heard)));
            $told = \array_filter($log->lines, static fn(string $line): bool => \str_contains($line, 'no such row'));
            self::assertLessThanOrEqual(1 + (\hrtime(true) - $began) / 1e9 / self::SCHEDULE_RETRY_SECONDS, \count($told), 'not again at every look');
            self::assertStringContainsString('Schedule "refused" failed', \implode($told));
            $bus->close();
            $database->close();
        });
    }

    /** @dataProvider scheduleNames */
    #[DataProvider('scheduleNames')]
    public function testAScheduleWhoseNameNoDatabaseTakesIsRefused(string $name, string $shown): void
    {
        $this->inRuntime(function () use ($name, $shown): void {
            $bus = Bus::connect(new Memory(), Database::connect($this->dsn()));
            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage('The name of a schedule must have 1 to 200 bytes of UTF-8 without NUL, got "' . $shown . '" of ' . \strlen($name));
            $bus->schedule($name, '* * * * *', static fn(): StoreCustomer => self::customer('1'));
        });
    }

    public function testASecondScheduleWithTheNameOfAnotherIsRefused(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect(new Memory(), Database::connect($this->dsn()));
            $bus->schedule('nightly', '0 3 * * *', static fn(): StoreCustomer => self::customer('1'));
            $bus->schedule('hourly', '0 * * * *', static fn(): StoreCustomer => self::customer('2'));
            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage('This bus already has a schedule "nightly"');
            $bus->schedule('nightly', '0 4 * * *', static fn(): StoreCustomer => self::customer('3'));
        });
    }

    public static function scheduleNames(): iterable
    {
        yield 'empty' => ['', ''];
        yield 'too long' => [\str_repeat('x', 201), \str_repeat('x', 201)];
        yield 'not UTF-8' => ["Nachtl\xe4ufe", 'Nachtl?ufe'];
        yield 'with NUL' => ["a\0", "a\0"];
    }

    /** @return iterable<string, array{\Closure(): StoreCustomer}> */
    public static function brokenSchedules(): iterable
    {
        yield 'it throws' => [static fn(): StoreCustomer => throw new \LogicException('no such report')];
        yield 'it waits for a task that was cancelled' => [static function (): StoreCustomer {
            $task = async(static fn() => delay(9));
            $task->cancel('no such report');
            $task->await();

            return self::customer('never');
        }];
    }

    public function testAScheduleWhoseRuleWasChangedFollowsTheNewOne(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $heard = 0;
            $bus = Bus::connect($this->brokerDsn(), $database)->handlers(self::storing(static function () use (&$heard): void {
                $heard++;
            }))->schedule('customers', '0 3 1 1 *', static fn(): StoreCustomer => self::customer(1));
            $bus->queue(self::QUEUE)->declare();
            $database->execute("INSERT INTO weft_schedules (name, rule, due) VALUES ('customers', '* * * * * UTC', ?)", [\time() - 30]);
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            self::until(static fn(): bool => $database->execute('SELECT rule FROM weft_schedules')->value() === '0 3 1 1 * UTC');
            $bus->stop();
            $consuming->await();

            self::assertSame(0, $heard, 'what the old rule has missed is none of the new one');
            $bus->close();
            $database->close();
        });
    }

    public function testSchedulesOfOneNameWithDifferentCommandsBothFireEachTime(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = $this->database();
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $start = \gmmktime(4, 0, 30, 3, 4, 2026);
            $declared = static fn(): CustomerStored => new CustomerStored('1');
            $found = static fn() => new CustomerStored('2');
            // Two services, of which one runs twice.
            $workers = [$this->schedule($database, $delayed, '* * * * *', $log)];
            foreach ([$declared, $found] as $command) {
                $workers[] = $this->schedule($database, $delayed, '* * * * *', $log, $command);
            }
            // A worker of version 0.1 had the schedule of one of them.
            $database->execute("INSERT INTO weft_schedules (name, rule, due) VALUES ('customers', '* * * * * UTC', ?)", [$start + 1]);
            try {
                foreach ([0, 60, 120] as $elapsed) {
                    Clock::set($start + $elapsed);
                    foreach ($workers as $worker) {
                        $worker->fire();
                    }
                }
            } finally {
                Clock::set(null);
            }
            $types = \array_count_values($database->execute('SELECT type FROM weft_delayed')->column());
            \ksort($types);

            self::assertSame([[CustomerStored::class => 2, StoreCustomer::class => 2], []], [$types, $log->lines]);
            self::assertSame([CustomerStored::class, StoreCustomer::class], $database->execute('SELECT type FROM weft_schedules ORDER BY type')->column());
            $database->close();
        });
    }

    public function testAScheduleOfDifferentCommandsIsItsNameWhereItsClosureSaysSo(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = $this->database();
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $start = \gmmktime(4, 0, 30, 3, 4, 2026);
            $isFirst = true;
            // Two workers, which know it since different days.
            $declared = static function () use (&$isFirst): object {
                return $isFirst ? new CustomerStored('1') : self::customer(1);
            };
            $found = static function () use (&$isFirst) {
                return $isFirst ? new CustomerStored('1') : self::customer(1);
            };
            $first = $this->schedule($database, $delayed, '* * * * *', $log, $declared);
            $second = $this->schedule($database, $delayed, '* * * * *', $log, $declared);
            try {
                Clock::set($start);
                $first->fire();
                $isFirst = false;
                foreach ([0, 60, 120] as $elapsed) {
                    Clock::set($start + $elapsed);
                    $second->fire();
                    $first->fire();
                }
                self::assertSame([2, []], [$database->execute('SELECT count(*) FROM weft_delayed')->value(), $log->lines]);

                $isFirst = true;
                $third = $this->schedule($database, $delayed, '* * * * *', $log, $found);
                $third->fire();
                $isFirst = false;
                Clock::set($start + 180);
                $third->fire();
            } finally {
                Clock::set(null);
            }
            self::assertStringContainsString('Schedule "customers" makes commands of different types, ' . CustomerStored::class . ' and ' . StoreCustomer::class, \implode("\n", $log->lines));
            $database->close();
        });
    }

    public function testAScheduleThatAClockAheadHasFiredIsDueAgainByTheRightClock(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = Database::connect($this->dsn());
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $start = \gmmktime(4, 0, 30, 3, 4, 2026);
            $right = $this->schedule($database, $delayed, '* * * * *', $log);
            $ahead = $this->schedule($database, $delayed, '* * * * *', $log);
            $count = static fn(): int => $database->execute('SELECT count(*) FROM weft_delayed')->value();
            try {
                Clock::set($start);
                $right->fire();
                Clock::set($start + 30 * 86_400);
                $ahead->fire();
                self::assertSame(1, $count(), 'for all times until then');
                self::assertSame($start - 30 + 30 * 86_400 + 1, $database->execute('SELECT due FROM weft_schedules')->value());
                Clock::set($start + 30);
                $right->fire();
                self::assertSame([1, $start + 31], [$count(), $database->execute('SELECT due FROM weft_schedules')->value()]);
                self::assertCount(1, $log->lines);
                self::assertStringStartsWith('warning Schedule "customers" was not due before 2026-04-03 04:00:01 UTC, because a worker whose clock was ahead has fired it; it is due again from now on', $log->lines[0]);
                foreach ([90, 150] as $seconds) {
                    Clock::set($start + $seconds);
                    $right->fire();
                }
                self::assertSame(3, $count());
                // The worker that was ahead, with the right time again.
                Clock::set($start + 210);
                $ahead->fire();
                $right->fire();
                self::assertSame(4, $count());
            } finally {
                Clock::set(null);
            }
            self::assertCount(1, $log->lines);
            $database->close();
        });
    }

    public function testEachTimeFiresOnceWhileTheClockIsSetBackAndForthByAnHour(): void
    {
        $this->inRuntime(function (): void {
            $log = new RecordingLogger();
            $database = Database::connect($this->dsn());
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $start = \gmmktime(4, 0, 30, 3, 4, 2026);
            // Seconds between the times of each.
            $workers = [[600, $this->schedule($database, $delayed, '*/10 * * * *', $log)], [300, $this->schedule($database, $delayed, '*/5 * * * *', $log)]];
            $expected = [];
            $latest = [$start, $start];
            try {
                for ($elapsed = 0; $elapsed < 7_200; $elapsed += 60) {
                    foreach ($workers as $index => [$interval, $worker]) {
                        // Each has its turns of being an hour ahead.
                        $now = $start + $elapsed + (\intdiv($elapsed, 1_800) % 4 === 2 * $index + 1 ? 3_600 : 0);
                        Clock::set($now);
                        $worker->fire();
                        // One that was an hour ahead has had its times until then.
                        $time = \intdiv($now, $interval) * $interval;
                        $time > $latest[$index] && $expected[$latest[$index] = $time] = $time;
                    }
                }
            } finally {
                Clock::set(null);
            }
            \sort($expected);
            // They look half a minute after each time.
            $times = \array_map(static fn(int $due): int => \intdiv($due, 300_000) * 300, $database->execute('SELECT due FROM weft_delayed ORDER BY due')->column());

            self::assertSame($expected, $times);
            self::assertSame([], $log->lines);
            $database->close();
        });
    }

    /**
     * @dataProvider mixtures
     *
     * @param list<string> $rules
     * @param list<int>    $minutes of an hour
     */
    #[DataProvider('mixtures')]
    public function testWhileWorkersKnowDifferentRulesOfAScheduleEachTimeOfAnyOfThemIsDueOnce(array $rules, array $minutes): void
    {
        $this->inRuntime(function () use ($rules, $minutes): void {
            $database = Database::connect($this->dsn());
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $start = \gmmktime(4, 0, 30, 3, 4, 2026);
            $seed = \random_int(1, 1_000_000);
            \mt_srand($seed);
            $workers = [];
            try {
                for ($time = $start; $time < $start + 3_560; $time += 20) {
                    // A deploy: they come one after the other, and some look late.
                    \count($workers) < 12 && $workers[] = $this->schedule($database, $delayed, $rules[\count($workers) % \count($rules)]);
                    \shuffle($workers);
                    foreach ($workers as $index => $worker) {
                        Clock::set($time + $index / 100);
                        $index < 9 && $worker->fire();
                    }
                }
            } finally {
                Clock::set(null);
            }
            $due = \array_map(static fn(array $row): int => \intdiv($row['due'] - 1000 * ($start + 30), 60_000), $database->execute('SELECT due FROM weft_delayed ORDER BY due')->rows());

            self::assertSame($minutes, $due, "seed {$seed}");
            $database->close();
        });
    }

    public static function mixtures(): iterable
    {
        // Minutes since the first one that is full, 04:01.
        yield 'the same times, written differently' => [['* * * * *', '*/1 * * * *', '0-59 * * * *'], \range(0, 58)];
        yield 'an old and a new rule' => [['*/30 * * * *', '15 * * * *'], [14, 29]];
        yield 'times that are close' => [['10 * * * *', '11 * * * *', '12 * * * *'], [9, 10, 11]];
    }

    public function testATimeFiresThoughItsOnlyWorkerLooksAfterALaterOneOfAnotherRule(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $late = $this->schedule($database, $delayed, '10 4 * * *');
            $other = $this->schedule($database, $delayed, '11 4 * * *');
            try {
                // Their processes, seconds after four o'clock and what has fired then.
                foreach ([[$late, 30, 0], [$other, 31, 0], [$other, 661, 1], [$late, 670, 2], [$late, 680, 2], [$other, 690, 2], [$late, 86_400 + 601, 3]] as [$worker, $seconds, $fired]) {
                    Clock::set(\gmmktime(4, 0, $seconds, 3, 4, 2026));
                    $worker->fire();
                    self::assertSame($fired, $database->execute('SELECT count(*) FROM weft_delayed')->value(), "after {$seconds} seconds");
                }
            } finally {
                Clock::set(null);
            }
            $database->close();
        });
    }

    public function testATimeThatAWorkerOf01HasFiredDoesNotFireAgainAfterALaterOne(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $late = $this->schedule($database, $delayed, '10 4 * * *');
            $other = $this->schedule($database, $delayed, '12 4 * * *');
            $at = static fn(int $minute, int $second): int => \gmmktime(4, $minute, $second, 3, 4, 2026);
            try {
                foreach ([$late, $other] as $worker) {
                    Clock::set($at(0, 30));
                    $worker->fire();
                }
                // It has fired at 4:10.
                $database->execute('UPDATE weft_schedules SET due = ?', [$at(10, 1)]);
                Clock::set($at(12, 10));
                $other->fire();
                Clock::set($at(12, 20));
                $late->fire();
            } finally {
                Clock::set(null);
            }
            self::assertSame(1, $database->execute('SELECT count(*) FROM weft_delayed')->value(), 'the one at 4:12');
            $database->close();
        });
    }

    public function testHoweverLateWorkersWithDifferentRulesLookEachTimeFiresOnce(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:');
            (new Migrator($database))->ensure(Tables::component());
            $delayed = new DelayedMessages($database, new Memory(), new NullLogger());
            $seed = \random_int(1, 1_000_000);
            \mt_srand($seed);
            $start = \gmmktime(4, 0, 30, 3, 4, 2026);
            $workers = [];
            foreach ([1, 2, 3, 3, 4, 10, 60] as $minutes) {
                $workers[] = [60 * $minutes, $this->schedule($database, $delayed, $minutes === 60 ? '0 * * * *' : "*/{$minutes} * * * *")];
            }
            $times = [];
            try {
                for ($time = $start; $time < $start + 10_800; $time += 10) {
                    // Each looks once in a while: all at first, so that they know when they begin.
                    foreach ($workers as $index => [$interval, $worker]) {
                        if ($time > $start && \mt_rand(0, 3 * ($index + 1)) > 0) {
                            continue;
                        }
                        Clock::set($time);
                        $worker->fire();
                        // What it has missed counts as the last one.
                        $last = \intdiv($time, $interval) * $interval;
                        $last > $start && $times[$last] = true;
                        self::assertSame(\count($times), $database->execute('SELECT count(*) FROM weft_delayed')->value(), "after {$time}, every {$interval} seconds, seed {$seed}");
                    }
                }
            } finally {
                Clock::set(null);
            }
            self::assertGreaterThan(100, \count($times));
            $database->close();
        });
    }

    private function schedule(Database $database, DelayedMessages $delayed, string $rule, LoggerInterface $logger = new NullLogger(), ?\Closure $command = null): Schedules
    {
        $schedules = new Schedules($database, $delayed, new EnvelopeFactory(new Codec(), new BodyStore(null)), $logger);
        $schedules->add('customers', new Cron($rule, new \DateTimeZone('UTC')), $command ?? static fn(): StoreCustomer => self::customer(1));

        return $schedules;
    }

    public function testADelayWithoutADatabaseIsRefused(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect(new SpyTransport(new Memory()));
            try {
                $bus->publish(new CustomerStored('1'), new SendOptions(delay: 1.0));
                self::fail('it was put off');
            } catch (\Error $error) {
                self::assertStringContainsString('pass a Database to Bus::connect()', $error->getMessage());
            } finally {
                $bus->close();
            }
        });
    }

    /** @dataProvider nonsense */
    #[DataProvider('nonsense')]
    public function testADelayThatMakesNoSenseIsRefused(?float $delay, ?\DateTimeImmutable $at): void
    {
        $this->inRuntime(function () use ($delay, $at): void {
            $bus = Bus::connect(new Memory());
            $this->expectException(\ValueError::class);
            $bus->publish(new CustomerStored('1'), new SendOptions(delay: $delay, at: $at));
        });
    }

    public static function nonsense(): iterable
    {
        yield 'negative' => [-1.0, null];
        yield 'not a number' => [\NAN, null];
        yield 'endless' => [\INF, null];
        yield 'both' => [1.0, new \DateTimeImmutable()];
    }

    private function consuming(\Closure $connect, \Closure $test): void
    {
        $this->inRuntime(function () use ($connect, $test): void {
            $heard = new \ArrayObject();
            $bus = $connect($this)->handlers(self::listening(static function (CustomerStored $event) use ($heard): void {
                $heard[$event->id] = \microtime(true);
            }));
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            $test($bus, $heard);
            $bus->stop();
            $consuming->await();
            $bus->close();
        });
    }

    private static function transport(Bus $bus): Transport
    {
        /** @var Setup $setup */
        $setup = (new \ReflectionProperty($bus, 'setup'))->getValue($bus);

        return $setup->transport;
    }

    private static function until(\Closure $done): void
    {
        while (!$done()) {
            delay(0.005);
        }
    }
}
