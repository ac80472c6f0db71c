<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Batch;
use Weft\Bus\BatchItem;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\EventListener;
use Weft\Bus\Context;
use Weft\Bus\DuplicateHandlerError;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\HandlerTimeoutException;
use Weft\Bus\Header;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\MessageOptions;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Timeout;
use Weft\Bus\TransactionFinishedException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\async;
use function Weft\delay;

final class BatchTest extends BusTestCase
{
    use MariaDb;
    use Servers;
    use TemporaryDatabase;

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testEveryMessageHasItsEffectAndItsEventOnceInFarFewerCalls(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $sizes = $heard = [];
            $bus = Bus::connect($transport, $database)->handlers(
                self::batching(static function (array $items, Transaction $transaction) use (&$sizes): void {
                    $sizes[] = \count($items);
                    foreach ($items as $item) {
                        $transaction->execute('INSERT INTO effects (id, listener) VALUES (?, ?)', [$item->message->id, 'batch']);
                        $item->context->publish(new CustomerStored($item->message->id));
                    }
                }),
                self::listening(static function (CustomerStored $event) use (&$heard): void {
                    $heard[] = $event->id;
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(1000));
            self::drain($bus);

            $expected = \array_map('strval', \range(1, 1000));
            self::assertEqualsCanonicalizing($expected, $database->execute('SELECT id FROM effects')->column());
            self::assertEqualsCanonicalizing($expected, $heard);
            self::assertSame(1000, \array_sum($sizes));
            self::assertLessThanOrEqual(100, \max($sizes));
            self::assertLessThan(200, \count($sizes));
            self::assertSame([1000, 1000, 2000], [$bus->admin()->stats()->commands, $bus->admin()->stats()->events, $bus->admin()->stats()->sent]);
            self::assertSame([0, 0], [$bus->admin()->backlog()['outbox'], $bus->queue(self::QUEUE)->depth()]);
            $bus->close();
            $database->close();
        });
    }

    /** @return iterable<string, array{string}> */
    public static function places(): iterable
    {
        yield 'memory and SQLite' => ['memory'];
        yield 'one SQLite file' => ['sqlite'];
        yield 'RabbitMQ and PostgreSQL' => ['servers'];
        yield 'memory and MariaDB or MySQL' => ['mariadb'];
        yield 'one PostgreSQL database' => ['postgres'];
    }

    /** @return iterable<string, array{string}> */
    public static function placesWithAnInbox(): iterable
    {
        yield 'memory and SQLite' => ['memory'];
        yield 'RabbitMQ and PostgreSQL' => ['servers'];
        yield 'memory and MariaDB or MySQL' => ['mariadb'];
        yield 'one PostgreSQL database' => ['postgres'];
    }

    public function testAnItemThatFailsGoesItsWayAloneAndTheOthersAreNotRepeated(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $calls = [];
            $bus = Bus::connect($transport, $database, new BusOptions(messages: new MessageOptions(classes: [CustomerStored::class])))->handlers(self::batching(static function (array $items, Transaction $transaction) use (&$calls): void {
                foreach ($items as $item) {
                    $calls[$item->message->id] = ($calls[$item->message->id] ?? 0) + 1;
                    $item->context->publish(new CustomerStored($item->message->id));
                    if ($item->message->id === '3') {
                        $item->fail(new \DomainException('no such customer'));
                    } else {
                        $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$item->message->id]);
                    }
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(5));
            self::drain($bus);

            self::assertSame(['1', '2', '4', '5'], $database->execute('SELECT id FROM effects ORDER BY id')->column());
            self::assertSame(['1' => 1, '2' => 1, '3' => 1, '4' => 1, '5' => 1], $calls);
            self::assertSame(4, $bus->admin()->stats()->commands);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(['no such customer', \DomainException::class, 1], [$letter->errorMessage(), $letter->errorClass(), $letter->attempts()]);
            self::assertStringEndsWith('::store', $letter->failedHandlers()[0]);
            self::assertSame(9, $bus->admin()->stats()->sent, 'five commands and the events of four');
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testMessagesGivenToTheBusItselfLeaveAlsoIfEveryItemFails(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $heard = [];
            $bus = Bus::connect($transport, $database, new BusOptions(retry: new Retry()));
            $bus->handlers(
                self::batching(static function (array $items) use ($bus): void {
                    $bus->publish(new CustomerStored('tried'));
                    foreach ($items as $item) {
                        $item->context->publish(new CustomerStored('of an item'));
                        $item->fail(new \DomainException('no'));
                    }
                }),
                self::listening(static function (CustomerStored $event) use (&$heard): void {
                    $heard[] = $event->id;
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            self::drain($bus);

            self::assertSame([['tried'], 3], [$heard, $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $bus->close();
            $database->close();
        });
    }

    public function testABatchThatThrowsIsHalvedUntilTheItemsAtFaultAreAlone(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $bus = Bus::connect($transport, $database)->handlers(self::batching(static function (array $items, Transaction $transaction): void {
                foreach ($items as $item) {
                    $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$item->message->id]);
                    if (\in_array($item->message->id, ['17', '80'], true)) {
                        throw new \DomainException("no {$item->message->id}");
                    }
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(100));
            self::drain($bus);

            self::assertSame(98, $database->execute('SELECT count(DISTINCT id) FROM effects')->value());
            self::assertSame(98, $database->execute('SELECT count(*) FROM effects')->value());
            $errors = \array_map(static fn($letter): string => $letter->errorMessage(), $bus->queue(self::QUEUE)->deadLetters()->peek());
            \sort($errors);
            self::assertSame(['no 17', 'no 80'], $errors);
        });
    }

    /** @dataProvider placesWithAnInbox */
    #[DataProvider('placesWithAnInbox')]
    public function testABatchHandlerCannotEndItsTransaction(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $bus = Bus::connect($transport, $database)->handlers(self::batching(static function (array $items, Transaction $transaction): void {
                $transaction->execute('INSERT INTO effects (id, listener) VALUES (?, ?)', ['1', 'batch']);
                $transaction->commit();
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2));
            self::drain($bus);

            self::assertSame(0, $database->execute('SELECT count(*) FROM effects')->value());
            $letters = $bus->queue(self::QUEUE)->deadLetters()->peek(10);
            self::assertSame([TransactionFinishedException::class, TransactionFinishedException::class], \array_map(static fn($letter): ?string => $letter->errorClass(), $letters));
            $bus->close();
            $database->close();
        });
    }

    public function testATaskThatFailsAfterABatchHandlerHasReturnedFailsItsItems(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $bus = Bus::connect($transport, $database)->handlers(self::batching(static function (array $items, Transaction $transaction): void {
                foreach ($items as $item) {
                    $transaction->execute('INSERT INTO effects (id, listener) VALUES (?, ?)', [$item->message->id, 'batch']);
                    async(static function () use ($item): void {
                        delay(0.01);
                        $item->message->id === '2' && throw new \DomainException('mail server is down');
                    });
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(4));
            self::drain($bus);

            self::assertEqualsCanonicalizing(['1', '3', '4'], $database->execute('SELECT id FROM effects')->column());
            self::assertSame(['mail server is down'], \array_map(static fn($letter): ?string => $letter->errorMessage(), $bus->queue(self::QUEUE)->deadLetters()->peek(10)));
            $bus->close();
            $database->close();
        });
    }

    public function testAnItemIsRetriedAsOftenAsItsRuleSaysAndAlone(): void
    {
        $this->inRuntime(function (): void {
            [$transport, $database] = $this->place('memory');
            $sizes = [];
            $bus = Bus::connect($transport, $database)->handlers(new class ($sizes) {
                public function __construct(private array &$sizes) {}

                #[CommandHandler]
                #[Batch(StoreCustomer::class)]
                #[Retry(immediate: 2, delayed: 1, delay: 0.05)]
                public function store(array $items, Transaction $transaction): void
                {
                    $this->sizes[] = \count($items);
                    foreach ($items as $item) {
                        $item->message->id === '2' ? $item->fail(new \DomainException('never')) : $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$item->message->id]);
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(4));
            while ($bus->queue(self::QUEUE)->deadLetters()->count() === 0) {
                self::drain($bus);
            }

            self::assertSame([4, 1, 1, 1, 1, 1], $sizes);
            self::assertSame(6, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->attempts());
            self::assertSame(['1', '3', '4'], $database->execute('SELECT id FROM effects ORDER BY id')->column());
        });
    }

    /** @dataProvider placesWithAnInbox */
    #[DataProvider('placesWithAnInbox')]
    public function testAMessageThatArrivesTwiceHasOneEffectAlsoWithinOneBatch(string $place): void
    {
        $this->inRuntime(function () use ($place): void {
            [$transport, $database] = $this->place($place);
            $bus = Bus::connect($transport, $database)->handlers(self::batching(static function (array $items, Transaction $transaction): void {
                foreach ($items as $item) {
                    $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$item->message->id]);
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $copies = [];
            for ($id = 1; $id <= 20; $id++) {
                $copies[] = self::copy($id);
                $id % 2 === 0 && $copies[] = self::copy($id);
            }
            $transport->publish($copies);
            self::drain($bus);
            $transport->publish([self::copy(5), self::copy(21), self::copy(6), self::copy(7, 'another')]);
            self::drain($bus);

            $expected = \array_map('strval', \range(1, 21));
            self::assertEqualsCanonicalizing($expected, $database->execute('SELECT id FROM effects')->column());
            self::assertSame([12, 0], [$bus->admin()->stats()->duplicates, $bus->queue(self::QUEUE)->depth()]);
            self::assertSame([DuplicateMessageIdException::class], \array_map(static fn($letter): string => $letter->errorClass(), $bus->queue(self::QUEUE)->deadLetters()->peek()));
            $bus->close();
            $database->close();
        });
    }

    public function testAFullBatchDoesNotWaitForTheWindowAndAnItemWaitsNoLonger(): void
    {
        $this->inRuntime(function (): void {
            $at = [];
            $bus = Bus::connect('memory:');
            $bus->handlers(new class ($at) {
                public function __construct(private array &$at) {}

                #[CommandHandler]
                #[Batch(StoreCustomer::class, size: 3, window: 55.0)]
                public function store(array $items): void
                {
                    $this->at['full'] = [\microtime(true), \count($items)];
                }

                #[EventListener]
                #[Batch(CustomerStored::class, size: 3, window: 0.3)]
                public function stored(array $items): void
                {
                    $this->at['alone'] = [\microtime(true), \count($items)];
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            $started = \microtime(true);
            $bus->sendAll(self::customers(3));
            $bus->publish(new CustomerStored('1'));
            while (\count($at) < 2) {
                delay(0.01);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame([3, 1], [$at['full'][1], $at['alone'][1]]);
            self::assertLessThan(50.0, $at['full'][0] - $started, 'three are enough, they do not wait for the window');
            self::assertGreaterThan(0.29, $at['alone'][0] - $started);
        });
    }

    public function testOneWhoseTimeIsOverIsDroppedAndTheOthersAreHandled(): void
    {
        $this->inRuntime(function (): void {
            $ids = [];
            $bus = Bus::connect('memory:')->handlers(self::batching(static function (array $items) use (&$ids): void {
                foreach ($items as $item) {
                    $ids[] = $item->message->id;
                }
            }, CustomerStored::class, event: true));
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'), new SendOptions(expires: 0.01));
            $bus->publish(new CustomerStored('2'));
            delay(0.05);
            self::drain($bus);

            self::assertSame([['2'], 1, 1], [$ids, $bus->admin()->stats()->expired, $bus->admin()->stats()->events]);
        });
    }

    public function testABatchThatTakesTooLongIsCancelled(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry()))->handlers(new class {
                #[CommandHandler]
                #[Batch(StoreCustomer::class)]
                #[Timeout(0.05)]
                public function store(array $items): void
                {
                    foreach ($items as $item) {
                        $item->message->id === '2' && delay(30.0);
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            self::drain($bus);

            self::assertSame(2, $bus->admin()->stats()->commands);
            self::assertSame(HandlerTimeoutException::class, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorClass());
        });
    }

    public function testOneThatCannotBeDecodedIsDeadLetteredAndTheOthersAreHandled(): void
    {
        $this->inRuntime(function (): void {
            $transport = new Memory();
            $ids = [];
            $bus = Bus::connect($transport)->handlers(new class ($ids) {
                public function __construct(private array &$ids) {}

                #[CommandHandler]
                #[Batch(StoreCustomer::class)]
                public function store(array $items): void
                {
                    foreach ($items as $item) {
                        $this->ids[] = $item->message->id;
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $transport->publish([self::copy(1), new Outgoing(StoreCustomer::class, '{"id":', [Header::MESSAGE_ID => 'x', Header::KIND => 'command']), self::copy(3)]);
            self::drain($bus);

            self::assertSame(['1', '3'], $ids);
            self::assertSame('{"id":', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->body);
        });
    }

    public function testABatchHandlerThatCannotBeOneIsRefusedByName(): void
    {
        $bus = Bus::connect('memory:');
        $refused = [];
        foreach (
            [
            new class {
                #[CommandHandler]
                #[Batch(StoreCustomer::class)]
                public function store(StoreCustomer $command): void {}
            },
            new class {
                #[CommandHandler]
                #[Batch(StoreCustomer::class)]
                public function store(array $items, Context $context): void {}
            },
            ] as $service
        ) {
            try {
                $bus->handlers($service);
            } catch (InvalidHandlerError $invalid) {
                $refused[] = \preg_replace('/^.*::/s', '', $invalid->getMessage());
            }
        }
        self::assertSame([
            'store() takes batches, so its first parameter must be an array, the list of BatchItem',
            'store() takes batches and a Context; each BatchItem has a context of its own',
        ], $refused);

        $bus->handlers(self::batching(static fn() => null, CustomerStored::class, event: true));
        $this->expectException(DuplicateHandlerError::class);
        $this->expectExceptionMessage('a batch handler must be the only one');
        $bus->handlers(self::listening(static fn() => null));
    }

    private static function copy(int $id, string $name = 'name'): Outgoing
    {
        return new Outgoing(StoreCustomer::class, "{\"id\":\"{$id}\",\"name\":\"{$name}\",\"email\":\"e\"}", [
            Header::MESSAGE_ID => \sprintf('0198c7a2-0000-7000-8000-%012d', $id),
            Header::KIND => 'command',
        ], mustRoute: true);
    }

    /** @return array{Transport, Database} */
    private function place(string $place): array
    {
        if ($place === 'servers') {
            return [Transport\RabbitMq::connect($this->brokerDsn()), $this->database()];
        }
        if ($place === 'postgres') {
            $database = $this->database();

            return [Postgres::on($database), $database];
        }
        if ($place === 'mariadb') {
            return [new Memory(), $this->mariaDb()];
        }
        $database = Database::connect($this->dsn());
        $database->execute('CREATE TABLE effects (id TEXT, listener TEXT)');

        return [$place === 'sqlite' ? Sqlite::on($database) : new Memory(), $database];
    }

    private static function batching(\Closure $handle, string $of = StoreCustomer::class, bool $event = false): object
    {
        return $event
            ? new class ($handle) {
                public function __construct(private readonly \Closure $handle) {}

                #[\Weft\Bus\EventListener]
                #[Batch(CustomerStored::class)]
                public function stored(array $items): void
                {
                    ($this->handle)($items);
                }
            }
            : new class ($handle) {
                public function __construct(private readonly \Closure $handle) {}

                /** @param list<BatchItem<StoreCustomer>> $items */
                #[CommandHandler]
                #[Batch(StoreCustomer::class, size: 100, window: 0.02)]
                public function store(array $items, Transaction $transaction): void
                {
                    ($this->handle)($items, $transaction);
                }
            };
    }
}
