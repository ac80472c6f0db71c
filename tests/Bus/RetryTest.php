<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\NoHandlerException;
use Weft\Bus\PublishException;
use Weft\Bus\QueryHandler;
use Weft\Bus\Recoverable;
use Weft\Bus\RequestFailedException;
use Weft\Bus\Retry;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\Sqlite;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\Unrecoverable;
use Weft\Sql\ConnectionRefusedException;
use Weft\Sql\Database;
use Weft\Sql\DeadlockException;
use Weft\Pool\PoolOptions;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Mail;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Bus\Fixtures\TextMessage;
use Weft\Tests\RecordingLogger;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/inherited.php';

/** What becomes of messages whose handler throws. */
class RetryTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    public static function buses(): iterable
    {
        yield 'memory, no database' => [static fn(): Bus => Bus::connect(new Memory())];
        yield 'SQLite' => [static fn(self $test): Bus => Bus::connect(Sqlite::connect($test->dsn()))];
        yield 'RabbitMQ and PostgreSQL' => [static fn(self $test): Bus => Bus::connect($test->brokerDsn(), $test->database())];
        yield 'RabbitMQ alone' => [static fn(self $test): Bus => Bus::connect($test->brokerDsn())];
        yield 'PostgreSQL' => [static fn(self $test): Bus => Bus::connect($test->databaseDsn(), $test->database())];
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAHandlerIsCalledAgainAtOnceAndLaterAndThenItsMessageIsDeadLettered(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $handler = new class {
                /** @var list<int> */
                public array $attempts = [];

                #[CommandHandler]
                #[Retry(immediate: 2, delayed: 2, delay: 0.05, jitter: 0.0)]
                public function store(StoreCustomer $command, Context $context): void
                {
                    $this->attempts[] = $context->failedAttempts();
                    throw new \DomainException('no');
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            $id = $bus->send(self::customer(1));
            self::consumeUntil($bus, static fn(): bool => $bus->admin()->stats()->deadLettered === 1);

            self::assertSame([0, 0, 0, 3, 3, 3, 6, 6, 6], $handler->attempts);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([9, $id, \DomainException::class, '{"id":"1","name":"name_1","email":"name@example.org"}'], [$letter->attempts(), $letter->messageId(), $letter->errorClass(), $letter->body]);
            self::assertSame([2, 1, 0], [$bus->admin()->stats()->retried, $bus->admin()->stats()->deadLettered, $bus->queue(self::QUEUE)->depth()]);
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testOnlyTheListenerThatFailedRunsAgain(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $listeners = new class {
                /** @var array<string, int> */
                public array $calls = ['first' => 0, 'second' => 0, 'third' => 0];

                #[EventListener]
                public function first(CustomerStored $event): void
                {
                    $this->calls['first']++;
                }

                #[EventListener]
                #[Retry(delayed: 5, delay: 0.02)]
                public function second(CustomerStored $event): void
                {
                    if (++$this->calls['second'] < 3) {
                        throw new \DomainException('not yet');
                    }
                }

                #[EventListener]
                public function third(CustomerStored $event): void
                {
                    $this->calls['third']++;
                }
            };
            $bus->handlers($listeners)->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'));
            self::consumeUntil($bus, static fn(): bool => $listeners->calls['second'] === 3);

            self::assertSame(['first' => 1, 'second' => 3, 'third' => 1], $listeners->calls);
            self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count());
        });
    }

    public function testOnlyTheInheritedListenerThatHasFailedIsCalledAgain(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:');
            $database->execute('CREATE TABLE notes (note TEXT)');
            $mail = new Mail();
            $text = new TextMessage(failures: 1);
            $bus = Bus::connect('memory:', $database, new BusOptions(retry: new Retry(delayed: 1, delay: 0.01)))->handlers($mail, $text);
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'));
            self::consumeUntil($bus, static fn(): bool => $text->calls > 1);

            self::assertSame([1, 2], [$mail->calls, $text->calls]);
            self::assertSame(['mail', 'text'], $database->execute('SELECT note FROM notes ORDER BY note')->column());
            $database->close();
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testOneFailedListenerIsRetriedAndTheOtherIsDeadLettered(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $listeners = new class {
                public int $calls = 0;

                #[EventListener]
                #[Retry(delayed: 5, delay: 0.02)]
                public function patient(CustomerStored $event): void
                {
                    if (++$this->calls < 3) {
                        throw new \DomainException('not yet');
                    }
                }

                #[EventListener]
                public function impatient(CustomerStored $event): void
                {
                    throw new \LengthException('never');
                }
            };
            $bus->handlers($listeners)->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'));
            self::consumeUntil($bus, static fn(): bool => $listeners->calls === 3);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([1, \LengthException::class], [$bus->queue(self::QUEUE)->deadLetters()->count(), $letter->errorClass()]);
            self::assertStringEndsWith('::impatient', \implode(',', $letter->failedHandlers()));
        });
    }

    /** @dataProvider exceptions */
    #[DataProvider('exceptions')]
    public function testTheExceptionDecides(\Throwable $thrown, int $calls): void
    {
        $this->with(static fn(): Bus => Bus::connect(new Memory(), options: new BusOptions(retry: new Retry(immediate: 1))), function (Bus $bus) use ($thrown, $calls): void {
            $handler = new class ($thrown) {
                public int $calls = 0;

                public function __construct(private readonly \Throwable $thrown) {}

                #[CommandHandler]
                #[Retry(immediate: 4, on: [\LengthException::class])]
                #[Retry(immediate: 2, on: [\LogicException::class, Unrecoverable::class])]
                public function store(StoreCustomer $command): void
                {
                    $this->calls++;
                    throw $this->thrown;
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::consumeUntil($bus, static fn(): bool => $bus->admin()->stats()->deadLettered === 1);

            self::assertSame($calls, $handler->calls);
            self::assertSame($calls, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->attempts());
        });
    }

    public static function exceptions(): iterable
    {
        yield 'the first rule that fits' => [new \LengthException('no'), 5];
        yield 'the second rule' => [new \DomainException('no'), 3];
        yield 'a rule for the previous exception' => [new \RuntimeException('no', previous: new \DomainException('no')), 3];
        yield 'no rule that fits' => [new \RuntimeException('no'), 2];
        yield 'marked as unrecoverable' => [new class ('no') extends \LengthException implements Unrecoverable {}, 1];
        yield 'a lock that another holds' => [new \Weft\Lock\LockConflictException('taken', 'stock'), 2];
        yield 'marked as recoverable' => [new class ('no') extends \RuntimeException implements Recoverable {}, 2];
        yield 'a deadlock' => [new DeadlockException('no'), 2];
    }

    /** @dataProvider ofHandlersWithoutARule */
    #[DataProvider('ofHandlersWithoutARule')]
    public function testWithoutARuleEverythingIsRetriedButMistakesInTheProgram(\Throwable $thrown, int $calls): void
    {
        $this->with(static fn(): Bus => Bus::connect(new Memory(), options: new BusOptions(retry: new Retry(immediate: 1))), function (Bus $bus) use ($thrown, $calls): void {
            $called = 0;
            $bus->handlers(self::storing(static function () use ($thrown, &$called): never {
                $called++;
                throw $thrown;
            }))->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame([$calls, 1], [$called, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public static function ofHandlersWithoutARule(): iterable
    {
        yield 'an exception' => [new \RuntimeException('no'), 2];
        yield 'a row that another message may bring' => [new \Weft\Sql\ForeignKeyViolationException('no'), 2];
        yield 'a row that exists' => [new \Weft\Sql\UniqueViolationException('no'), 1];
        yield 'a broker that did not take a message' => [new PublishException('no'), 2];
        yield 'a broker that refused a message' => [new PublishException('no', refused: true), 1];
        yield 'an error' => [new \TypeError('no'), 1];
        yield 'wrong SQL' => [new \Weft\Sql\SyntaxErrorException('no'), 1];
        yield 'a wrong argument' => [new \InvalidArgumentException('no'), 1];
        yield 'an error that is marked as recoverable' => [new class ('no') extends \LogicException implements Recoverable {}, 2];
        yield 'a message that cannot be decoded' => [MessageDecodingException::malformed(StoreCustomer::class, 'no'), 1];
        yield 'a command that is sent to nobody' => [new UndefinedQueueException('no'), 1];
    }

    public function testByDefaultAFailureIsRetriedThreeTimesAtOnceAndInFiveRounds(): void
    {
        self::assertEquals(new Retry(immediate: 3, delayed: 5), (new BusOptions())->retry);
    }

    public function testAQueryIsRetriedOnlyWhenItsFailureIsKnownToBeTransient(): void
    {
        $this->with(static fn(): Bus => Bus::connect(new Memory(), options: new BusOptions(retry: new Retry(immediate: 1))), function (Bus $bus): void {
            $handler = new class {
                public int $calls = 0;
                public \Throwable $thrown;

                #[QueryHandler]
                public function store(StoreCustomer $query): never
                {
                    $this->calls++;
                    throw $this->thrown;
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            foreach ([[new \RuntimeException('no'), 1], [new DeadlockException('no'), 2]] as [$handler->thrown, $calls]) {
                $handler->calls = 0;
                $asking = async(static function () use ($bus): void {
                    try {
                        $bus->request(self::customer(1));
                        self::fail('the handler throws');
                    } catch (RequestFailedException) {
                    }
                });
                self::consumeUntil($bus, static fn(): bool => $asking->isDone());
                self::assertSame($calls, $handler->calls);
            }
        });
    }

    public function testARuleOfTheClassAndOfTheMessageCountsWhereTheMethodHasNone(): void
    {
        $this->with(static fn(): Bus => Bus::connect(new Memory()), function (Bus $bus): void {
            $handler = new #[Retry(immediate: 3)] class {
                public int $calls = 0;

                #[CommandHandler]
                public function store(StoreCustomer $command): void
                {
                    $this->calls++;
                    throw new \DomainException('no');
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame(4, $handler->calls);
        });
    }

    public function testAMessageThatWaitsHoldsNoPlaceInThePrefetch(): void
    {
        $this->with(fn(): Bus => Bus::connect($this->brokerDsn(), $this->database()), function (Bus $bus): void {
            $handler = new class {
                /** @var list<int> */
                public array $handled = [];

                #[CommandHandler]
                #[Retry(delayed: 1, delay: 4.0, jitter: 0.0)]
                public function store(StoreCustomer $command, Context $context): void
                {
                    if ($context->failedAttempts() === 0 && $command->id <= 5) {
                        throw new \DomainException('not yet');
                    }
                    $this->handled[] = (int) $command->id;
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(10));
            $started = \microtime(true);
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 1)));
            while (\count($handler->handled) < 10) {
                delay(0.005);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame([6, 7, 8, 9, 10], \array_slice($handler->handled, 0, 5), 'those that did not fail went on meanwhile');
            self::assertGreaterThan(4.0, \microtime(true) - $started);
        });
    }

    public function testRulesOfDelayGrowUpToTheirMaximumAndAreSpread(): void
    {
        $retry = new Retry(delayed: 9, delay: 1.0, multiplier: 3.0, maxDelay: 20.0, jitter: 0.5);

        self::assertSame([1.0, 3.0, 9.0, 20.0, 20.0], \array_map(static fn(int $round): float => $retry->delayFor($round, 0.5), [1, 2, 3, 4, 9]));
        self::assertSame([0.75, 1.25], [$retry->delayFor(1, 0.0), $retry->delayFor(1, 1.0)]);
        self::assertSame(20.0, $retry->delayFor(4, 1.0));
    }

    public function testADelayedRetryComesBackFromADatabaseInMemory(): void
    {
        $this->inRuntime(static function (): void {
            $calls = 0;
            $bus = Bus::connect('sqlite::memory:?transaction_timeout=2', options: new BusOptions(retry: new Retry(delayed: 1, delay: 0.01)))->handlers(self::storing(static function () use (&$calls): void {
                ++$calls > 1 || throw new \RuntimeException('not yet');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::consumeUntil($bus, static function () use (&$calls): bool {
                return $calls === 2;
            });

            self::assertSame([1, 0], [$bus->admin()->stats()->commands, $bus->admin()->backlog()['delayed']]);
        }, 20.0);
    }

    public function testAnotherDatabaseThatCannotBeReachedDoesNotPauseTheHandlers(): void
    {
        $this->inRuntime(static function (): void {
            $logger = new RecordingLogger();
            $other = Database::connect('postgres://reports@127.0.0.1:1/reports');
            $calls = 0;
            $bus = Bus::connect('memory:', Database::connect('sqlite::memory:'), new BusOptions(retry: new Retry(), logger: $logger))->handlers(self::storing(static function () use ($other, &$calls): void {
                $calls++;
                $other->execute('SELECT 1');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame([1, 1, 0], [$calls, $bus->queue(self::QUEUE)->deadLetters()->count(), $bus->admin()->stats()->retried]);
            self::assertFalse($logger->hasRecord('warning', 'Database unavailable'));
        });
    }

    public function testHandlersThatCannotReachAnotherDatabaseAtTheSameTimeAreCalledOnceEach(): void
    {
        $this->inRuntime(static function (): void {
            $other = Database::connect('postgres://reports@127.0.0.1:1/reports');
            $calls = 0;
            $bus = Bus::connect('memory:', Database::connect('sqlite::memory:'), new BusOptions(retry: new Retry(), logger: new RecordingLogger()))->handlers(self::storing(static function () use ($other, &$calls): void {
                $calls++;
                $other->execute('SELECT 1');
            }));
            $bus->queue(self::QUEUE)->declare();
            foreach (\range(1, 10) as $number) {
                $bus->send(self::customer($number));
            }
            $bus->consume(self::QUEUE, concurrency: 10, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([10, 10], [$calls, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    /** @dataProvider endlessRules */
    #[DataProvider('endlessRules')]
    public function testAnEndlessDelayIsRefused(float $delay, float $maxDelay): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('A retry must have a delay and maxDelay of at least 0 and below 1e10 seconds');

        new Retry(delayed: 1, delay: $delay, maxDelay: $maxDelay);
    }

    /** @return iterable<string, array{float, float}> */
    public static function endlessRules(): iterable
    {
        yield 'a delay' => [\INF, 60.0];
        yield 'a longest delay' => [1.0, \INF];
        yield 'more than 64 bits of milliseconds' => [1e17, 1e17];
    }

    public function testARetryRuleForANonExceptionIsRefused(): void
    {
        new Retry(on: [\Throwable::class, \Weft\Bus\Recoverable::class, \DomainException::class]);

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('Cannot retry on "App\GatewayDwon": it is not an exception class');

        new Retry(on: ['App\GatewayDwon']);
    }

    public function testWorkersTogetherTryAsOftenAsTheRuleSays(): void
    {
        $this->with(fn(): Bus => Bus::connect($this->brokerDsn(), $this->database()), function (Bus $bus): void {
            $handler = new class {
                public int $calls = 0;

                #[CommandHandler]
                #[Retry(immediate: 1, delayed: 3, delay: 0.02)]
                public function store(StoreCustomer $command): void
                {
                    $this->calls++;
                    throw new \DomainException('no');
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            $others = \array_map(fn(): Bus => Bus::connect($this->brokerDsn(), $this->database())->handlers($handler), [1, 2, 3, 4, 5]);
            $consuming = \array_map(static fn(Bus $other): object => async(static fn(): int => $other->consume(self::QUEUE)), $others);
            $bus->sendAll(self::customers(5));
            while ($bus->queue(self::QUEUE)->deadLetters()->count() < 5) {
                delay(0.02);
            }
            foreach ($others as $index => $other) {
                $other->stop();
                $consuming[$index]->await();
                $other->close();
            }

            self::assertSame(5 * 8, $handler->calls);
            self::assertSame(8, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->attempts());
        });
    }

    public function testAListenerThatIsGoneWhileItsMessageWaitsDeadLettersIt(): void
    {
        $this->with(static fn(): Bus => Bus::connect(new Memory()), function (Bus $bus): void {
            $calls = 0;
            $bus->handlers(self::listening(static function () use (&$calls): void {
                $calls++;
            }))->queue(self::QUEUE)->declare();
            self::transport($bus)->put(self::QUEUE, [new Outgoing(CustomerStored::class, '{"id":"1"}', [Header::MESSAGE_ID => '1', Header::FAILED_HANDLER => 'Former::listener'])]);
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([0, NoHandlerException::class, true], [$calls, $letter->errorClass(), \str_contains($letter->errorMessage(), 'Former::listener')]);
        });
    }

    public function testADatabaseThatGoesAwayAndComesBackDeadLettersNothing(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $server = \parse_url($this->databaseDsn());
            $proxy = new Proxy($server['host'], $server['port']);
            $through = Database::connect(\str_replace(":{$server['port']}/", ":{$proxy->port}/", $this->databaseDsn()), new PoolOptions(size: 10));
            $bus = Bus::connect($this->brokerDsn(), $through)->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'stored']);
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(1_500));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 20));
            for ($cuts = 0; $cuts < 5;) {
                delay(0.05);
                if ($bus->admin()->stats()->commands > 150 * $cuts) {
                    $proxy->cut();
                    $cuts++;
                }
            }
            while ($bus->queue(self::QUEUE)->depth() > 0 || $bus->admin()->stats()->commands < 1_500) {
                delay(0.02);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame([1_500, 1_500], \array_values($database->execute('SELECT count(*) AS a, count(DISTINCT id) AS b FROM effects')->first()));
            self::assertSame([0, 0], [$bus->queue(self::QUEUE)->deadLetters()->count(), $bus->admin()->stats()->failed]);
            $bus->close();
            $through->close();
            $proxy->stop();
            $database->close();
        });
    }

    public function testAWorkerThatIsStoppedWhileTheDatabaseIsDownGivesItsMessagesBack(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $bus = Bus::connect($this->brokerDsn(), $database);
            $calls = 0;
            $bus->handlers(self::storing(static function () use (&$calls): never {
                $calls++;
                throw new ConnectionRefusedException('nobody there');
            }))->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(5));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
            while ($calls < 5) {
                delay(0.01);
            }
            $database->close();
            delay(0.1);
            $bus->stop();
            $consuming->await();

            // A quorum queue takes them back a moment after it was told to.
            while ($bus->queue(self::QUEUE)->depth() < 5) {
                delay(0.02);
            }
            self::assertSame([5, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $bus->close();
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testEachMessageComesBackAlthoughTheyShareAnIdOrHaveNone(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $handler = new class {
                /** @var array<string, int> */
                public array $calls = [];

                #[CommandHandler]
                #[Retry(delayed: 1, delay: 0.3)]
                public function store(StoreCustomer $command): void
                {
                    $this->calls[$command->id] = ($this->calls[$command->id] ?? 0) + 1;
                    if ($this->calls[$command->id] === 1) {
                        throw new \DomainException('not yet');
                    }
                }
            };
            $bus->handlers($handler)->queue(self::QUEUE)->declare();
            $message = static fn(int $number, array $headers): Outgoing => new Outgoing(StoreCustomer::class, \json_encode(self::customer($number), \JSON_THROW_ON_ERROR), $headers + [Header::KIND => 'command']);
            self::transport($bus)->put(self::QUEUE, [
                $message(1, [Header::MESSAGE_ID => 'same']), $message(2, [Header::MESSAGE_ID => 'same']), $message(3, []), $message(4, []),
            ]);
            self::consumeUntil($bus, static fn(): bool => $bus->admin()->stats()->commands === 4);

            \ksort($handler->calls);
            self::assertSame([1 => 2, 2 => 2, 3 => 2, 4 => 2], $handler->calls);
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAMessageOf20MiBIsHandledDeadLetteredAndRequeuedWhole(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $seen = [];
            $bus->handlers(self::storing(static function (StoreCustomer $command) use (&$seen): void {
                $seen[] = \hash('xxh3', $command->name);
                \count($seen) < 2 && throw new \DomainException('no');
            }))->queue(self::QUEUE)->declare();
            $name = \str_repeat("weft\n\u{1f9f5}", 20 << 17);
            $bus->send(new StoreCustomer('1', $name, 'e'));
            self::consumeUntil($bus, static fn(): bool => $bus->admin()->stats()->deadLettered === 1);
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->retry());
            self::consumeUntil($bus, static fn(): bool => $bus->admin()->stats()->commands === 1);

            self::assertSame([\hash('xxh3', $name), \hash('xxh3', $name)], $seen);
        });
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAnErrorOfAnyShapeIsToldByTheDeadLetter(\Closure $connect): void
    {
        $this->with($connect, function (Bus $bus): void {
            $cause = new class ("first\0\xff") extends \RuntimeException {};
            $error = new \DomainException("\0\xff" . \str_repeat('ä', 2_500_000), previous: $cause);
            (new \ReflectionProperty(\Exception::class, 'previous'))->setValue($cause, $error);
            $bus->handlers(self::storing(static fn() => throw $error))->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::consumeUntil($bus, static fn(): bool => $bus->admin()->stats()->deadLettered === 1);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(\DomainException::class, $letter->errorClass());
            self::assertStringStartsWith("\0?ää", $letter->errorMessage());
            self::assertSame([2_000, true], [\strlen($letter->errorMessage()), \mb_check_encoding($letter->errorMessage(), 'UTF-8')]);
            self::assertStringContainsString('caused by RuntimeException@anonymous', $letter->headers[Header::ERROR_STACK]);
            self::assertLessThanOrEqual(8_000, \strlen($letter->headers[Header::ERROR_STACK]));
        });
    }

    /** @param \Closure(self): Bus $connect */
    private function with(\Closure $connect, \Closure $test): void
    {
        $this->inRuntime(function () use ($connect, $test): void {
            $bus = $connect($this);
            try {
                $test($bus);
            } finally {
                $bus->close();
            }
        });
    }

    private static function consumeUntil(Bus $bus, \Closure $done): void
    {
        $consuming = async(static fn(): int => $bus->consume(self::QUEUE));
        while (!$done()) {
            delay(0.005);
        }
        // What came back too often would come now.
        delay(0.1);
        $bus->stop();
        $consuming->await();
    }

    private static function transport(Bus $bus): Transport
    {
        return (fn(): Transport => $this->setup->transport)->call($bus);
    }
}
