<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Batch;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CircuitBreaker;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Flow\AdaptiveLimit;
use Weft\Bus\Internal\Flow\SharedClock;
use Weft\Bus\Internal\Persistence\Dialect;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Bus\RateLimit;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Unrecoverable;
use Weft\Runtime\CancelledException;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Testing\TestBus;
use Weft\Tests\Bus\Fixtures\Alarm;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\Report;
use Weft\Tests\Bus\Fixtures\Killable;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** What is started when, and how much of it at a time. */
final class FlowTest extends BusTestCase
{
    use Killable;
    use MariaDb;
    use Servers;
    use TemporaryDatabase;

    public function testTheHighestPriorityComesFirstAndEqualOnesInTheirOrder(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:')->handlers(self::storing(static function (StoreCustomer $command) use (&$seen): void {
                $seen[] = (int) $command->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            foreach ([[1, null], [2, 0], [3, 9], [4, null], [5, 9], [6, 4]] as [$id, $priority]) {
                $bus->send(self::customer($id), new SendOptions(priority: $priority));
            }
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 10, stopWhenEmpty: true));

            self::assertSame([3, 5, 1, 4, 6, 2], $seen);
        });
    }

    public function testAnUrgentMessageThatArrivesOvertakesThoseThatAreHere(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:');
            $bus->handlers(
                self::storing(static function (StoreCustomer $command) use ($bus, &$seen): void {
                    $seen[] = $command->id;
                    $command->id === '2' && async(static fn() => $bus->send(new Alarm(1)))->await();
                    delay(0.001);
                }),
                new class ($seen) {
                    public function __construct(private array &$seen) {}

                    #[CommandHandler]
                    public function alarm(Alarm $command): void
                    {
                        $this->seen[] = 'alarm';
                    }
                },
            );
            $bus->queue(self::QUEUE)->declare();
            foreach (self::customers(6) as $customer) {
                $bus->send($customer, new SendOptions(priority: 3));
            }
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 20, stopWhenEmpty: true));

            self::assertSame(['1', '2', 'alarm', '3', '4', '5', '6'], $seen);
        });
    }

    public function testTenantsTakeTurnsHoweverManyMessagesOneHas(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:')->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                public function report(Report $command): void
                {
                    $this->seen[] = "{$command->tenant}{$command->number}";
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $reports = \array_map(static fn(int $number): Report => new Report('a', $number), \range(1, 6));
            $bus->sendAll([...$reports, new Report('b', 1), new Report('7', 1), new Report('b', 2)]);
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 20, stopWhenEmpty: true));

            self::assertSame(['a1', 'b1', '71', 'a2', 'b2', 'a3', 'a4', 'a5', 'a6'], $seen);
        });
    }

    public function testATenantWithFewMessagesHardlyWaitsBehindOneThatFloods(): void
    {
        $this->inRuntime(function (): void {
            $overtaken = [];
            $flood = 0;
            $bus = Bus::connect('memory:')->handlers(new class ($overtaken, $flood) {
                public function __construct(private array &$overtaken, private int &$flood) {}

                #[CommandHandler]
                public function report(Report $command, Context $context): void
                {
                    delay(0.001);
                    $command->tenant === 'a' ? $this->flood++ : $this->overtaken[] = $this->flood - (int) $context->header('handled-before');
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(\array_map(static fn(int $number): Report => new Report('a', $number), \range(1, 20_000)));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, concurrency: 10, options: new ConsumeOptions(prefetch: 30_000, signals: false)));
            for ($number = 1; $number <= 10; $number++) {
                delay(0.05);
                $bus->send(new Report('b', $number), new SendOptions(headers: ['handled-before' => (string) $flood]));
            }
            while (\count($overtaken) < 10) {
                delay(0.005);
            }
            self::assertLessThan(20_000, $flood, 'the flood was not over');
            self::assertLessThan(100, \max($overtaken), 'of the flood are handled before one that has just come');
            $bus->close();
            try {
                $consumer->await();
            } catch (\Throwable) {
            }
        });
    }

    public function testAMessageWhoseTimeIsOverIsDroppedAndCounted(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $seen = [];
            $bus = Bus::connect('memory:', options: new BusOptions(logger: $logger))->handlers(
                self::storing(static function (StoreCustomer $command) use (&$seen): void {
                    $seen[] = $command->id;
                }),
                new class ($seen) {
                    public function __construct(private array &$seen) {}

                    #[CommandHandler]
                    public function alarm(Alarm $command): void
                    {
                        $this->seen[] = "alarm {$command->number}";
                    }
                },
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1), new SendOptions(expires: 0.05));
            $bus->send(self::customer(2), new SendOptions(expires: 60.0));
            $bus->send(new Alarm(1));
            $bus->send(new Alarm(2), new SendOptions(expires: 60.0));
            // It has its two seconds from the moment when it is due.
            $bus->send(new Alarm(3), new SendOptions(delay: 2.5));
            delay(2.1);
            self::drain($bus);
            while ($bus->admin()->stats()->succeeded() < 3) {
                delay(0.02);
                self::drain($bus);
            }

            self::assertSame(['alarm 2', '2', 'alarm 3'], $seen);
            self::assertSame([2, 0], [$bus->admin()->stats()->expired, $bus->queue(self::QUEUE)->deadLetters()->count()]);
            self::assertTrue($logger->hasRecord('info', 'expired'));
        });
    }

    /** @dataProvider impossible */
    #[DataProvider('impossible')]
    public function testInvalidSendOptionsAreRefused(array $options, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        Bus::connect('memory:')->send(self::customer(1), new SendOptions(...$options));
    }

    /** @return iterable<array{array<string, mixed>, string}> */
    public static function impossible(): iterable
    {
        yield [['priority' => 10], 'A priority must be 0 to 9, got 10'];
        yield [['priority' => -1], 'A priority must be 0 to 9, got -1'];
        yield [['expires' => 0.0], 'The expiry of a message must be above 0 and below 10,000,000,000 seconds, got 0'];
        yield [['expires' => \NAN], 'The expiry of a message must be above 0 and below 10,000,000,000 seconds, got NAN'];
        yield [['headers' => ['message-id' => 'x']], 'not reserved for the bus'];
        yield [['headers' => ['weft-future' => 'x']], 'not reserved for the bus'];
        yield [['headers' => ['CC' => 'boss@example.org']], 'The header "CC" cannot be set: RabbitMQ interprets it'];
        yield [['headers' => ['BCC' => 'x']], 'The header "BCC" cannot be set'];
        yield [['headers' => ['x-death' => 'x']], 'The header "x-death" cannot be set'];
        yield [['headers' => ['x-first-death-exchange' => 'weft.commands']], 'The header "x-first-death-exchange" cannot be set'];
        yield [['headers' => ['a' => 1]], 'got "a" with int'];
        yield [['headers' => ['a' => \NAN]], 'got "a" with float'];
        yield [['headers' => ['raw' => "\xff\x00\xfe"]], 'The header "raw" of a message must be UTF-8, got the bytes ff00fe'];
        yield [['headers' => ["caf\xe9" => 'x']], 'The header "caf?" of a message must be UTF-8'];
        yield [['headers' => ['a' => \str_repeat('x', 20_000), 'b' => \str_repeat('y', 13_000)]], 'The headers of a message must have at most 32768 bytes in total, got 33002'];
    }

    public function testABreakerStopsStartingMessagesTriesOneAndGoesOnWhenThatSucceeds(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $at = $pauses = [];
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry(), logger: $logger))->handlers(self::storing(static function () use (&$at, &$pauses, $logger): void {
                $at[] = \microtime(true);
                $pauses[] = \count(\array_filter($logger->records, static fn(array $record): bool => \str_contains($record['message'], 'Circuit breaker of queue {queue} opens')));
                if (\count($at) <= 5) {
                    throw new \RuntimeException('the gateway is down');
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(20));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(signals: false, breaker: new CircuitBreaker(failures: 3, pause: 0.1, maxPause: 0.2))));
            while (\count($at) < 20) {
                delay(0.01);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame([0, 0, 0, 1, 2, 3], \array_slice($pauses, 0, 6), 'three in a row, then one at a time');
            self::assertSame(3, $pauses[19], 'one has succeeded, so all go on');
            self::assertGreaterThan(0.095, $at[3] - $at[2], 'then a pause, and one is tried');
            self::assertGreaterThan(0.19, $at[4] - $at[3], 'a pause twice as long, and one is tried');
            self::assertGreaterThan(0.19, $at[5] - $at[4], 'no longer than the longest');
            self::assertSame([15, 5], [$bus->admin()->stats()->commands, $bus->admin()->stats()->deadLettered]);
            self::assertTrue($logger->hasRecord('notice', 'Circuit breaker of queue {queue} closes'));
        });
    }

    public function testAnotherMessageIsTriedWhenTheOneThatWasHasSaidNothing(): void
    {
        $this->inRuntime(function (): void {
            $calls = 0;
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry()))->handlers(self::storing(static function () use (&$calls): void {
                ++$calls <= 2 && throw new \RuntimeException('the gateway is down');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2));
            $bus->send(self::customer(3), new SendOptions(expires: 0.02));
            $bus->send(self::customer(4));
            $consumer = async(static fn() => $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(signals: false, breaker: new CircuitBreaker(failures: 2, pause: 0.1))));
            while ($calls < 3) {
                delay(0.005);
            }
            $bus->stop();
            $consumer->await();

            self::assertSame([1, 1], [$bus->admin()->stats()->expired, $bus->admin()->stats()->commands]);
        });
    }

    public function testALoggerThatFailsChangesNothingOfWhatTheBreakerDoes(): void
    {
        $this->inRuntime(function (): void {
            $logger = new class extends \Psr\Log\AbstractLogger {
                public function log($level, $message, array $context = []): void
                {
                    throw new \LogicException('disk full');
                }
            };
            $calls = 0;
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry(), logger: $logger))->handlers(self::storing(static function () use (&$calls): void {
                ++$calls <= 3 && throw new \RuntimeException('the gateway is down');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(6));
            $bus->send(self::customer(7), new SendOptions(expires: 0.001));
            delay(0.01);
            $log = \ini_set('error_log', '/dev/null');
            try {
                $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true, signals: false, breaker: new CircuitBreaker(failures: 2, pause: 0.05)));
            } finally {
                \ini_set('error_log', $log);
            }

            self::assertSame([6, 3, 3, 1], [$calls, $bus->admin()->stats()->commands, $bus->admin()->stats()->deadLettered, $bus->admin()->stats()->expired]);
            self::assertSame([3, 0], [$bus->queue(self::QUEUE)->deadLetters()->count(), $bus->queue(self::QUEUE)->depth()]);
        });
    }

    public function testAMessageThatExpiresWhileItWaitsForARetryIsLoggedWithItsFailure(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $bus = (new TestBus())->configure(new BusOptions(retry: new Retry(delayed: 3, delay: 10.0, jitter: 0.0), logger: $logger))->handlers(self::storing(static function (): void {
                throw new \RuntimeException('the gateway is down');
            }));
            $id = $bus->send(self::customer(7), new SendOptions(expires: 5.0));
            $bus->run();
            self::assertFalse($logger->has('expired'));
            $bus->advance(20.0);

            self::assertSame(1, $bus->bus()->admin()->stats()->expired);
            $bus->assertNoDeadLetters();
            [$line] = \array_values(\array_filter($logger->lines, static fn(string $line): bool => \str_contains($line, 'expired')));
            self::assertStringStartsWith('warning Message ' . StoreCustomer::class . " {$id} expired while it waited for a retry, and is no dead letter; failed attempts: 1, in ", $line);
            self::assertStringEndsWith(', the last with RuntimeException: the gateway is down', $line);
            $bus->close();
        });
    }

    public function testAnInvalidExpiryIsIgnored(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $calls = 0;
            $bus = Bus::connect($broker)->handlers(self::storing(static function () use (&$calls): void {
                $calls++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->put(self::QUEUE, [new Outgoing(StoreCustomer::class, '{"id":"1","name":"a","email":"b"}', [Header::MESSAGE_ID => '1', Header::EXPIRES_AT => 'tomorrow', Header::KIND => 'command'])]);
            self::drain($bus);

            self::assertSame([1, 0], [$calls, $bus->admin()->stats()->expired]);
        });
    }

    public function testFailuresThatAreAMessagesOwnFaultDoNotOpenTheBreaker(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers(self::storing(static fn() => throw new class ('mine') extends \RuntimeException implements Unrecoverable {}));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(10));
            $broker->publish(\array_fill(0, 10, new Outgoing(StoreCustomer::class, '{', [])));
            $started = \microtime(true);
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true, breaker: new CircuitBreaker(failures: 2, pause: 60.0)));

            self::assertSame(20, $bus->admin()->stats()->deadLettered);
            self::assertLessThan(50.0, \microtime(true) - $started, 'it has not paused');
        });
    }

    public function testAHandlerIsCalledNoMoreOftenThanItsRateSays(): void
    {
        $this->inRuntime(function (): void {
            $at = [];
            $bus = Bus::connect('memory:')->handlers(new class ($at) {
                public function __construct(private array &$at) {}

                #[CommandHandler]
                #[RateLimit(perSecond: 2.5, burst: 5)]
                public function store(StoreCustomer $command): void
                {
                    $this->at[] = \microtime(true);
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(10));
            $started = \microtime(true);
            self::drain($bus);

            self::assertGreaterThan(1.98, $at[9] - $started, '5 at once, 5 at 2.5 a second');
        });
    }

    /** @dataProvider slowHandlers */
    #[DataProvider('slowHandlers')]
    public function testAWorkerThatStopsDoesNotWaitForARate(object $handler): void
    {
        $this->inRuntime(function () use ($handler): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database)->handlers($handler);
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(4));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, 10));
            while ($handler->calls === 0) {
                delay(0.005);
            }
            // The next call is due in 1,000 seconds.
            delay(0.05);
            $bus->stop();
            $consuming->await();

            self::assertSame([1, 3], [$handler->calls, $bus->queue(self::QUEUE)->depth()]);
            self::assertSame([0, 0], [$bus->queue(self::QUEUE)->deadLetters()->count(), $bus->admin()->stats()->failed]);
            $database->close();
        });
    }

    public static function slowHandlers(): iterable
    {
        yield 'one message' => [new class {
            public int $calls = 0;

            #[CommandHandler]
            #[RateLimit(perSecond: 0.001)]
            public function store(StoreCustomer $command): void
            {
                $this->calls++;
            }
        }];
        yield 'one message, shared' => [new class {
            public int $calls = 0;

            #[CommandHandler]
            #[RateLimit(perSecond: 0.001, shared: true)]
            public function store(StoreCustomer $command): void
            {
                $this->calls++;
            }
        }];
        yield 'a batch' => [new class {
            public int $calls = 0;

            #[CommandHandler, Batch(of: StoreCustomer::class, size: 1)]
            #[RateLimit(perSecond: 0.001)]
            public function store(array $items): void
            {
                $this->calls++;
            }
        }];
    }

    public function testTheLastMessagesOfALimitWaitForTheirRate(): void
    {
        $this->inRuntime(function (): void {
            $handled = 0;
            $bus = Bus::connect('memory:')->handlers(new class ($handled) {
                public function __construct(private int &$handled) {}

                #[CommandHandler]
                #[RateLimit(perSecond: 4.0)]
                public function store(StoreCustomer $command): void
                {
                    $this->handled++;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(5));
            $bus->consume(self::QUEUE, 10, new ConsumeOptions(limit: 3));

            self::assertSame([3, 2], [$handled, $bus->queue(self::QUEUE)->depth()]);
        });
    }

    public function testABurstIsCalledAtOnce(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(new class {
                #[CommandHandler]
                #[RateLimit(perSecond: 0.01, burst: 5)]
                public function store(StoreCustomer $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(5));

            // The second one alone would be called after 100 seconds, when the time of this test is over.
            self::assertSame(5, self::drain($bus));
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testProcessesThatShareARateKeepItTogetherHoweverManyHandlersWaitAndHoweverTheClockIsSet(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $dsn = match ($kind) {
                'sqlite' => $this->dsn(),
                'postgres' => $this->postgresDsnWithAClockToSet(),
                'mariadb' => $this->mariaDbDsnWithAClockToSet(),
            };
            $database = Database::connect($dsn);
            (new Migrator($database))->ensure(Tables::component());
            // The first turn is later than the processes need to start: it is known when no call may have been yet.
            $start = \microtime(true) + 3.0;
            $clock = $kind === 'sqlite' ? \intdiv(\hrtime(true), 1_000) : $database->execute('SELECT ' . (new Dialect($database))->microseconds())->value();
            $database->execute('INSERT INTO weft_rate_limits (name, reserved_us, clock_us) VALUES (?, ?, ?)', ['gateway', 3_000_000, $clock]);
            $files = [];
            for ($process = 1; $process <= 3; $process++) {
                $this->startWriting($files[] = "{$this->directory}/calls.{$process}", 'limited.php', $dsn, '334');
            }
            while (\min(\array_map(static fn(string $file): int => \count(self::times($file)), $files)) < 10) {
                delay(0.05);
            }
            // A busy machine calls late what has its turn in time, so one window of many counts; a rate that is too slow is so in each.
            for ($calls = 0, $tries = 0; $calls < 380 && $tries < 8; $tries++) {
                $from = \microtime(true) + 0.2;
                foreach ([0, 3600, 0, -3600, 3600, -3600] as $shift) {
                    delay(0.7);
                    // The clock of SQLite is the machine's monotonic one, which cannot be set.
                    $kind === 'sqlite' || $database->execute('UPDATE clock SET shift = ?', [$shift]);
                }
                delay(0.3);
                $times = \array_merge(...\array_map(self::times(...), $files));
                $calls = \count(\array_filter($times, static fn(float $time): bool => $time >= $from && $time < $from + 4.0));
            }
            self::assertGreaterThanOrEqual(380, $calls, '100 a second for 4 s, to 5 %');

            // However busy the machine is, no call comes before its turn.
            \sort($times);
            $early = \array_filter($times, static fn(float $time, int $index): bool => $index > 105 * ($time - $start) + 10, \ARRAY_FILTER_USE_BOTH);
            self::assertSame([], $early, 'at most 100 a second, to 5 %, from the first turn to each call');
            $database->close();
        }, deadline: 240.0);
    }

    /** Of a schema in which the server's clock shows what `clock.shift` adds to it, in seconds. */
    private function postgresDsnWithAClockToSet(): string
    {
        $dsn = $this->databaseDsn();
        $database = Database::connect($dsn);
        $database->execute('CREATE TABLE clock AS SELECT 0 AS shift');
        $database->execute("CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.clock_timestamp() + (SELECT make_interval(secs => shift) FROM {$this->schema}.clock)'");
        $database->close();

        // PostgreSQL looks into its own schema first, unless that has a place.
        return \str_replace($this->schema, "{$this->schema}%2Cpg_catalog", $dsn);
    }

    /**
     * Of a database in which a session that reads a rate limit has set its clock by `clock.shift`, in seconds. It goes on from there, because
     * {@see \Weft\Sql\Internal\Clock} adds the time since, if the shift is a multiple of half an hour.
     */
    private function mariaDbDsnWithAClockToSet(): string
    {
        $dsn = $this->mariaDbDsn();
        $database = Database::connect($dsn);
        (new Migrator($database))->ensure(Tables::component());
        $database->execute('CREATE TABLE clock AS SELECT 0 AS shift');
        $database->execute('CREATE FUNCTION set_clock() RETURNS INT READS SQL DATA BEGIN SET timestamp = UNIX_TIMESTAMP(SYSDATE(6)) + (SELECT shift FROM clock); RETURN 1; END');
        $database->execute('RENAME TABLE weft_rate_limits TO rate_limits');
        $database->execute('CREATE VIEW weft_rate_limits AS SELECT name, reserved_us, clock_us FROM rate_limits WHERE set_clock() = 1');
        $database->close();

        return $dsn;
    }

    public function testASlowSharedRateHoldsWhileAThousandHandlersWait(): void
    {
        $this->inRuntime(function (): void {
            $handled = 0;
            $bus = Bus::connect('memory:', $database = Database::connect($this->dsn()))->handlers(new class ($handled) {
                public function __construct(private int &$handled) {}

                #[CommandHandler]
                #[RateLimit(perSecond: 5.0, shared: true, name: 'gateway')]
                public function store(StoreCustomer $command): void
                {
                    $this->handled++;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(1_000));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 1_000, options: new ConsumeOptions(signals: false)));
            $started = \microtime(true);
            while ($handled < 6) {
                delay(0.01);
            }

            self::assertGreaterThan(0.98, \microtime(true) - $started, '6 calls at 5 a second');
            self::assertLessThan(1_500_000, $database->execute('SELECT reserved_us FROM weft_rate_limits')->value(), 'microseconds that turns are taken in advance');
            async($bus->close(...))->await();
            try {
                $consuming->await();
            } catch (CancelledException) {
                // Those that wait go back.
            }
            $database->close();
        });
    }

    /** Several processes read a clock, each with a monotonic one of its own; it is set as often as they please. */
    public function testTheTimeBetweenTwoReadingsOfAClockThatIsSetMeanwhileIsKnown(): void
    {
        $seed = \random_int(1, 1_000_000);
        \mt_srand($seed);
        $clocks = $started = [];
        for ($process = 0; $process < 3; $process++) {
            $clocks[] = new SharedClock();
            $started[] = \mt_rand(0, 1_000_000_000);
        }
        $true = $shift = $sum = 0;
        $seen = null;
        for ($reading = 0; $reading < 3_000; $reading++) {
            $true += \mt_rand(1_000, 200_000);
            $shift = $reading > 10 && $reading % 10 === 0 ? \mt_rand(-1, 1) * 3_600_000_000 : $shift;
            // As those who take turns do: each comes again after the others.
            $process = $reading % 3;
            $now = 1_700_000_000_000_000 + $true + $shift;
            $sum += $clocks[$process]->elapsed($seen ?? $now, $now, $started[$process] + $true);
            $seen = $now;
            $first ??= $true;
        }

        self::assertSame($true - $first, $sum, "seed {$seed}");
    }

    public function testAProcessThatHasNotReadTheClockBeforeTakesOneThatWasSetBackForOneThatStands(): void
    {
        self::assertSame(0, (new SharedClock())->elapsed(3_600_000_000, 1_000, 5.0));
        self::assertSame(999_000, (new SharedClock())->elapsed(1_000, 1_000_000, 5.0));
    }

    /** @return list<float> */
    private static function times(string $file): array
    {
        // The last line may be half there.
        return \array_map('floatval', \array_slice(\explode("\n", (string) \file_get_contents($file)), 0, -1));
    }

    /** @return iterable<string, array{string}> */
    public static function databases(): iterable
    {
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    public function testASharedRateGoesOnAfterItsClockWasSetBack(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $bus = Bus::connect('memory:', $database)->handlers(new class {
                #[CommandHandler]
                #[RateLimit(perSecond: 1000.0, shared: true, name: 'gateway')]
                public function store(StoreCustomer $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $database->execute('INSERT INTO weft_rate_limits (name, reserved_us, clock_us) VALUES (?, 1000, ?)', ['gateway', \intdiv(\hrtime(true), 1_000) + 86_400_000_000]);
            $bus->send(self::customer(1));
            $started = \microtime(true);
            self::drain($bus);

            self::assertLessThan(50.0, \microtime(true) - $started, 'not the day by which the clock was ahead');
            self::assertSame(1, $bus->admin()->stats()->commands);
        });
    }

    public function testARateIsAboveZeroAndASharedOneNeedsADatabase(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(new class {
                #[CommandHandler]
                #[RateLimit(perSecond: 10.0, shared: true, name: 'gateway')]
                public function store(StoreCustomer $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);
            self::assertStringContainsString('The rate limit "gateway" is shared and needs a database', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());
            $this->expectException(\ValueError::class);
            new RateLimit(perSecond: 0.0);
        });
    }

    /** @dataProvider slowRates */
    #[DataProvider('slowRates')]
    public function testARateLimitBeyondWhatItsClockCountsIsRefused(float $perSecond, int $burst): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('A rate limit must allow its burst within 1,000,000,000 seconds, got ');
        new RateLimit(perSecond: $perSecond, burst: $burst, shared: true);
    }

    public static function slowRates(): iterable
    {
        yield 'one call in longer than a life' => [0.9e-9, 1];
        yield 'never' => [1e-300, 1];
        yield 'the smallest number' => [5e-324, 1];
        yield 'a burst without end' => [1.0, \PHP_INT_MAX];
    }

    public function testWithoutTuningAFastHandlerKeepsUpWithWhatIsOffered(): void
    {
        $this->inRuntime(function (): void {
            $handled = $busy = $most = 0;
            $bus = Bus::connect('memory:')->handlers(self::storing(static function () use (&$handled, &$busy, &$most): void {
                $most = \max($most, ++$busy);
                delay(0.005);
                $busy--;
                $handled++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            $started = \microtime(true);
            // Two seconds are enough on a machine that has nothing else to do.
            for ($sent = 0; $sent < 4000 || ($most < 8 && $sent < 80_000);) {
                $due = (int) ((\microtime(true) - $started) * 2000);
                $bus->sendAll(self::customers($due - $sent, $sent));
                $sent = $due;
                delay(0.002);
            }
            while ($handled < $sent) {
                delay(0.002);
            }
            self::assertGreaterThanOrEqual(8, $most, 'as many at a time as the offered rate needs, not the two it begins with');
            $bus->stop();
            $consumer->await();
        });
    }

    public function testWhenCallsBecomeTenTimesSlowerFewerRunAtOnceAndMoreAgainWhenTheyRecover(): void
    {
        $gradient = new AdaptiveLimit(0.0);
        $now = 0.0;
        $run = static function (float $seconds, float $takes) use ($gradient, &$now): void {
            for ($end = $now + $seconds; $now < $end;) {
                $now += $takes / $gradient->limit;
                $gradient->ended($takes, $gradient->limit, $now);
            }
        };
        $run(10.0, 0.005);
        $usual = $gradient->limit;
        self::assertGreaterThan(50, $usual);
        $run(3.0, 0.05);
        self::assertLessThan($usual / 3, $gradient->limit);
        $run(10.0, 0.005);
        self::assertGreaterThan(50, $gradient->limit);
    }

    public function testCallsThatWaitForEachOtherAreNotMadeMore(): void
    {
        // A resource for 8 at a time: more calls only wait, and take the longer.
        $gradient = new AdaptiveLimit(0.0);
        $now = 0.0;
        for ($call = 0; $call < 20_000; $call++) {
            $takes = 0.005 * \max(1.0, $gradient->limit / 8);
            $now += $takes / $gradient->limit;
            $gradient->ended($takes, $gradient->limit, $now);
        }

        self::assertGreaterThanOrEqual(8, $gradient->limit);
        self::assertLessThan(40, $gradient->limit);
    }

    public function testASlowDatabaseBringsTheNumberInFlightDown(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database(50);
            $pause = 0.005;
            $taken = $calls = 0;
            $bus = Bus::connect('memory:', $database, new BusOptions(retry: new Retry()));
            $bus->handlers(self::storing(static function () use ($database, &$pause, &$taken, &$calls): void {
                $begun = \hrtime(true);
                $database->execute('SELECT pg_sleep(?)', [$pause]);
                $taken += (\hrtime(true) - $begun) / 1e9;
                $calls++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            $sender = async(static function () use ($bus): never {
                while (true) {
                    $bus->queue(self::QUEUE)->depth() < 2_000 && $bus->sendAll(self::customers(2_000));
                    delay(0.01);
                }
            });
            $inFlight = static function (float $seconds) use ($bus): float {
                $sum = $samples = 0;
                for ($until = \microtime(true) + $seconds; \microtime(true) < $until; $samples++) {
                    delay(0.01);
                    $sum += $bus->admin()->stats()->inFlight;
                }

                return $sum / $samples;
            };
            delay(2.0);
            for ($usual = 0.0; $usual <= 10.0;) {
                $usual = $inFlight(0.5);
            }
            // Ten times slower than it was on this machine, which may be busy.
            $pause = \max(0.05, 10 * $taken / \max(1, $calls));
            for ($reduced = \INF, $looks = 0; $reduced >= 0.7 * $usual && $looks < 60; $looks++) {
                $reduced = $inFlight(0.5);
            }
            self::assertLessThan(0.7 * $usual, $reduced);
            $sender->cancel();
            $bus->close();
            try {
                $consumer->await();
            } catch (\Throwable) {
            }
            $database->close();
        }, 240.0);
    }
}
