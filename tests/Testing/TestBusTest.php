<?php

declare(strict_types=1);

namespace Weft\Tests\Testing;

use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\IncompleteTest;
use PHPUnit\Framework\SkippedTest;
use PHPUnit\Framework\TestCase;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\QueryHandler;
use Weft\Bus\Recoverable;
use Weft\Bus\RequestFailedException;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Sql\Transaction;
use Weft\Testing\Faults;
use Weft\Testing\Simulation;
use Weft\Testing\SimulationException;
use Weft\Testing\TestBus;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Saga\Fixtures\Begin;
use Weft\Tests\Bus\Saga\Fixtures\Checkout;
use Weft\Tests\Bus\Saga\Fixtures\OrderCancelled;
use Weft\Tests\Bus\Saga\Fixtures\OrderPlaced;
use Weft\Tests\Bus\Saga\Fixtures\Ticked;
use Weft\Tests\Bus\Saga\Fixtures\Ticker;
use Weft\Tests\Execution;
use Weft\Tests\Extension;
use Weft\Tests\RecordingLogger;
use Weft\UsageError;

require_once __DIR__ . '/../Bus/Fixtures/messages.php';
require_once __DIR__ . '/../Bus/Saga/Fixtures/checkout.php';
require_once __DIR__ . '/../Bus/Saga/Fixtures/steps.php';

final class TestBusTest extends TestCase
{
    protected function tearDown(): void
    {
        \putenv('WEFT_SEED');
    }

    public function testConsequencesOfAMessageAreDoneWhenSendReturns(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(self::storing());
            $id = $bus->send(self::customer('7'));

            self::assertNotSame('', $id);
            $bus->assertSent(StoreCustomer::class)->once()->with(id: '7', email: static fn(string $email): bool => $email !== '');
            $bus->assertSent(CustomerStored::class)->once()->with(id: '7');
            $bus->assertSent(ForgetCustomer::class)->never();
            $bus->assertNoDeadLetters();
            self::assertSame('7', $bus->assertSent(CustomerStored::class)->first()->id);
        });
    }

    public function testAMissingMessageIsReportedWithTheDeadLetters(): void
    {
        $this->expectException(AssertionFailedError::class);
        $this->expectExceptionMessageMatches('/CustomerStored to be sent once, but it was never\. Sent messages: .*StoreCustomer\.\nDead letters:\n  .*StoreCustomer: Weft.Sql.SyntaxErrorException: .*near "UPDATE"/s');

        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
                {
                    $transaction->execute('SELECT 1 FOR UPDATE')->value();
                    $context->publish(new CustomerStored($command->id));
                }
            });
            $bus->send(self::customer('7'));

            $bus->assertSent(CustomerStored::class)->once();
        });
    }

    public function testTheClockStandsUntilItIsMovedAndDelaysComeAtTheirTime(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $heard = [];
            $bus->handlers(self::listening(static function (CustomerStored $event) use ($bus, &$heard): void {
                $heard[$event->id] = $bus->now()->format('H:i:s');
            }));
            $bus->publish(new CustomerStored('an hour'), new SendOptions(delay: 3600.0));
            $bus->publish(new CustomerStored('a minute'), new SendOptions(delay: 60.0));
            $bus->bus()->publish(new CustomerStored('a date'), new SendOptions(at: new \DateTimeImmutable('2026-01-01 00:30:00 UTC')));
            self::assertSame('2026-01-01 00:00:00', $bus->now()->format('Y-m-d H:i:s'));
            $bus->advance(59.9);
            self::assertSame([], $heard);
            $bus->advance(7200.0);

            self::assertSame(['a minute' => '00:01:00', 'a date' => '00:30:00', 'an hour' => '01:00:00'], $heard);
            self::assertSame('02:00:59.900', $bus->now()->format('H:i:s.v'));
        });
    }

    public function testASagaTimeoutAfterTheEndIsLoggedAsDebug(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $logger = new RecordingLogger();
            $bus->configure(new BusOptions(logger: $logger))->handlers(Checkout::class);
            $bus->publish(new OrderPlaced('1', late: 60.0));
            $bus->publish(new OrderCancelled('1'));
            $bus->advance(61.0);

            self::assertTrue($logger->hasRecord('debug', 'Ignored'));
            self::assertSame([], \array_filter($logger->records, static fn(array $record): bool => $record['level'] !== 'debug'));
        });
    }

    public function testSchedulesTimeoutsAndRetriesComeWithTheClock(): void
    {
        $began = \microtime(true);
        Simulation::run(static function (TestBus $bus): void {
            $attempts = [];
            $bus->configure(new BusOptions(retry: new Retry(delayed: 3, delay: 10.0, multiplier: 2.0, jitter: 0.0)))->handlers(Ticker::class, new class ($bus, $attempts) {
                /** @param list<string> $attempts */
                public function __construct(private readonly TestBus $bus, private array &$attempts) {}

                #[CommandHandler]
                public function forget(ForgetCustomer $command): void
                {
                    $this->attempts[] = $this->bus->now()->format('i:s');
                    throw new class ('not now') extends \RuntimeException implements Recoverable {};
                }
            });
            $bus->bus()->schedule('nightly', '30 2 * * *', static fn(): Begin => new Begin($bus->now()->format('Y-m-d')));
            $bus->send(new ForgetCustomer('1'));
            $bus->advance(3 * 86_400.0);

            self::assertSame(['00:00', '00:10', '00:30', '01:10'], $attempts);
            $bus->assertDeadLettered(ForgetCustomer::class, because: \RuntimeException::class)->once();
            $bus->assertSent(Begin::class)->times(3)->with(id: '2026-01-02');
            $bus->assertSent(Ticked::class)->times(3 * Ticker::TICKS);
        }, deadline: 300.0);
        self::assertLessThan(600.0, \microtime(true) - $began, 'three days');
    }

    /** @dataProvider beginnings */
    #[DataProvider('beginnings')]
    public function testWithoutPhpunitItSaysWhatToInstall(string $begin): void
    {
        $root = \dirname(__DIR__, 2);
        \is_file("$root/vendor/autoload.php") && self::markTestSkipped('Composer\'s autoloader has PHPUnit');
        $code = "require \$argv[1]; try { {$begin} } catch (Weft\\UsageError \$error) { echo \$error->getMessage(); }";

        $begun = Execution::of([\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-r', $code, "$root/autoload.php"]);

        self::assertStringStartsWith('Weft\Testing needs PHPUnit, which is not installed or not loaded: composer require --dev phpunit/phpunit', $begun->output);
    }

    /** @return iterable<string, array{string}> */
    public static function beginnings(): iterable
    {
        yield 'a bus' => ['new Weft\Testing\TestBus();'];
        yield 'a simulation' => ['Weft\Testing\Simulation::run(function (): void {});'];
    }

    public function testTheClockIsAdvancedFromOneTimeOfAScheduleToTheNext(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(Ticker::class);
            $bus->bus()->schedule('nightly', '30 2 * * *', static fn(): Begin => new Begin('1'));
            $bus->advance(3_600.0);

            self::assertSame('2026-01-01 02:30:00', \gmdate('Y-m-d H:i:s', (int) $bus->bus()->admin()->releaseDue()));
        });
    }

    public function testAFailedAssertionListsTheActualMessages(): void
    {
        $cases = [
            'to be sent never, but it was once' => static fn(TestBus $bus) => $bus->assertSent(CustomerStored::class)->never(),
            'No ' . CustomerStored::class . ' that was sent has id "8"' => static fn(TestBus $bus) => $bus->assertSent(CustomerStored::class)->with(id: '8'),
            'to be sent 2 times, but it was once' => static fn(TestBus $bus) => $bus->assertSent(StoreCustomer::class)->times(2),
            'to be sent, but it was not' => static fn(TestBus $bus) => $bus->assertSent(ForgetCustomer::class)->first(),
            'Expected ' . ForgetCustomer::class . ' to be sent, but it was not' => static function (TestBus $bus): void {
                $bus->assertSent(ForgetCustomer::class);
            },
            'Expected ' . StoreCustomer::class . ' to be dead-lettered, but it was not. There are no dead letters.' => static function (TestBus $bus): void {
                $bus->assertDeadLettered(StoreCustomer::class);
            },
            'to be dead-lettered once, but it was never. There are no dead letters.' => static fn(TestBus $bus) => $bus->assertDeadLettered(StoreCustomer::class)->once(),
        ];
        foreach ($cases as $message => $expectation) {
            try {
                Simulation::run(static function (TestBus $bus) use ($expectation): void {
                    $bus->handlers(self::storing());
                    $bus->send(self::customer('7'));
                    $expectation($bus);
                });
                $failure = null;
            } catch (AssertionFailedError $failure) {
            }
            self::assertStringContainsString($message, (string) $failure?->getMessage());
        }
    }

    public function testAsManyMessagesAsOneCallHandlesAreNoLoop(): void
    {
        $handled = 0;
        Simulation::run(static function (TestBus $bus) use (&$handled): void {
            $bus->handlers(self::listening(static function () use (&$handled): void {
                $handled++;
            }));
            for ($i = 0; $i < 10_000; $i++) {
                $bus->bus()->publish(new CustomerStored((string) $i));
            }
            $bus->run();
        }, deadline: 300.0);

        self::assertSame(10_000, $handled);
    }

    public function testTheClockAdvancesByAFiniteTimeOnly(): void
    {
        foreach ([\INF, \NAN, -1.0] as $seconds) {
            $bus = new TestBus();
            try {
                $bus->advance($seconds);
                self::fail('refused');
            } catch (\ValueError $error) {
                self::assertStringContainsString('can only be advanced by a finite time', $error->getMessage());
            } finally {
                $bus->close();
            }
        }
    }

    public function testASecondOpenBusIsRefusedAndLeavesTheClockOfTheFirst(): void
    {
        $first = new TestBus();
        $first->advance(1_000.0);
        try {
            new TestBus();
            self::fail('refused');
        } catch (UsageError $error) {
            self::assertStringContainsString('call close() on it first', $error->getMessage());
        }
        self::assertSame('2026-01-01T00:16:40+00:00', $first->now()->format(\DATE_ATOM));
        $first->close();

        $second = new TestBus();
        $first->close();
        self::assertSame('2026-01-01T00:00:00+00:00', $second->now()->format(\DATE_ATOM), 'the first is closed already');
        $second->close();
    }

    public function testASkippedOrIncompleteScenarioIsNoFailure(): void
    {
        foreach ([[SkippedTest::class, static fn() => self::markTestSkipped('no server')], [IncompleteTest::class, static fn() => self::markTestIncomplete('no server')]] as [$class, $mark]) {
            try {
                Simulation::run($mark);
                $thrown = null;
            } catch (\Throwable $thrown) {
            }
            self::assertInstanceOf($class, $thrown);
            self::assertSame('no server', $thrown->getMessage());
        }
    }

    public function testALoopEndsWithItsName(): void
    {
        $this->expectException(AssertionFailedError::class);
        $this->expectExceptionMessage('handlers seem to loop');
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(self::listening(static fn(CustomerStored $event, Context $context): string => $context->publish($event)));
            $bus->publish(new CustomerStored('again'));
        }, deadline: 300.0);
    }

    public function testEffectsInTheTransactionHappenOnceWhateverGoesWrongAndOthersDoNot(): void
    {
        $repeated = 0;
        Simulation::run(function (TestBus $bus) use (&$repeated): void {
            $bus->database->execute('CREATE TABLE customers (id TEXT)');
            $runs = 0;
            $bus->handlers(self::storing(static function () use (&$runs): void {
                $runs++;
            }), self::listening(static fn() => null));
            foreach (\range(1, 30) as $i) {
                $bus->bus()->send(self::customer((string) $i));
            }
            $bus->run();

            self::assertEqualsCanonicalizing(\range(1, 30), $bus->database->execute('SELECT CAST(id AS INTEGER) FROM customers')->column());
            $bus->assertSent(CustomerStored::class)->times(30);
            $bus->assertNoDeadLetters();
            $repeated += $runs - 30;
        }, runs: 10, faults: Faults::all(), deadline: 600.0);
        self::assertGreaterThan(0, $repeated, 'something did go wrong');
    }

    public function testASeedGivesTheSameRunAgainAndAnotherOneAnother(): void
    {
        $runs = [];
        foreach ([5, 5, 6] as $seed) {
            $order = [];
            Simulation::run(static function (TestBus $bus) use (&$order): void {
                $bus->handlers(self::listening(static function (CustomerStored $event) use (&$order): void {
                    $order[] = $event->id;
                }));
                foreach (\range(1, 40) as $i) {
                    $bus->bus()->publish(new CustomerStored((string) $i));
                }
                $bus->run();
            }, faults: Faults::all(), seed: $seed);
            $runs[] = \implode(' ', $order);
        }
        self::assertSame($runs[0], $runs[1]);
        self::assertNotSame($runs[0], $runs[2]);
        self::assertNotSame(\implode(' ', \range(1, 40)), $runs[0]);
    }

    public function testAFailedRunNamesItsSeedAndTheSeedBringsItBack(): void
    {
        $ran = 0;
        $scenario = static function (TestBus $bus) use (&$ran): void {
            $ran++;
            $order = [];
            $bus->handlers(self::listening(static function (CustomerStored $event) use (&$order): void {
                $order[] = $event->id;
            }));
            foreach (['first', 'second', 'third'] as $id) {
                $bus->bus()->publish(new CustomerStored($id));
            }
            $bus->run();
            // A mistake of those this is for: it holds as long as messages come in order.
            self::assertSame('first', $order[0]);
        };
        try {
            Simulation::run($scenario, runs: 200, faults: new Faults(reorder: 0.05), seed: 1);
            $failure = null;
        } catch (AssertionFailedError $failure) {
        }
        self::assertMatchesRegularExpression('/Run (\d+) of 200 failed with seed \1\. Reproduce it with WEFT_SEED=\1$/', (string) $failure?->getMessage());
        self::assertGreaterThan(1, $ran);
        \preg_match('/WEFT_SEED=(\d+)/', $failure->getMessage(), $seed);
        [$before, $ran] = [$failure->getMessage(), 0];
        \putenv("WEFT_SEED={$seed[1]}");
        try {
            Simulation::run($scenario, runs: 200, faults: new Faults(reorder: 0.05), seed: 1);
            $failure = null;
        } catch (AssertionFailedError $failure) {
        }
        self::assertSame(1, $ran);
        self::assertSame(\strstr($before, "\n", true), \strstr((string) $failure?->getMessage(), "\n", true));
    }

    public function testAnotherExceptionKeepsItsClassAndGetsTheSeed(): void
    {
        try {
            Simulation::run(static fn() => throw new \DomainException('broken'), seed: 42);
            self::fail('nothing was thrown');
        } catch (SimulationException $failed) {
            self::assertInstanceOf(\DomainException::class, $failed->getPrevious());
            self::assertStringStartsWith("DomainException: broken\n", $failed->getMessage());
            self::assertStringEndsWith('WEFT_SEED=42', $failed->getMessage());
        }
    }

    public function testAfterATestTheClockIsTheRealOne(): void
    {
        Simulation::run(static fn(TestBus $bus) => $bus->advance(1.0));
        $before = \microtime(true);
        $now = \Weft\Bus\Internal\Clock::now();

        self::assertEqualsWithDelta($now, \min(\max($now, $before), \microtime(true)), 0.001, 'between two readings of the real one');
    }

    public function testAQueryIsAnsweredAndItsFailureIsThrown(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(new class {
                #[QueryHandler]
                public function name(CustomerStored $query, Context $context): StoreCustomer
                {
                    $query->id === 'nobody' && throw new \DomainException('there is no such customer');
                    $context->publish(new ForgetCustomer($query->id));

                    return new StoreCustomer($query->id, 'Zoë', 'zoe@example.org');
                }

                #[EventListener]
                public function asked(ForgetCustomer $event): void {}
            });
            $answer = $bus->request(new CustomerStored('7'), StoreCustomer::class);
            self::assertInstanceOf(StoreCustomer::class, $answer);
            self::assertSame('Zoë', $answer->name);
            $bus->assertSent(ForgetCustomer::class)->once();
            try {
                $bus->request(new CustomerStored('nobody'));
                self::fail('answered');
            } catch (RequestFailedException $failed) {
                self::assertSame(\DomainException::class, $failed->error);
            }
            $bus->assertNoDeadLetters();
        });
    }

    public function testDeadLetteredMessagesCanBeTriedAgain(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $works = false;
            $bus->handlers(self::listening(static function () use (&$works): void {
                $works || throw new \DomainException('not yet');
            }));
            $bus->publish(new CustomerStored('1'));
            $bus->assertDeadLettered(CustomerStored::class, because: \DomainException::class)->once();
            $bus->assertDeadLettered(CustomerStored::class, because: \LogicException::class)->once();
            $bus->assertDeadLettered(CustomerStored::class, because: \TypeError::class)->never();
            $works = true;
            $bus->retryDeadLetters();
            $bus->assertNoDeadLetters();
        });
    }

    public function testInvalidArgumentsAreRefused(): void
    {
        foreach ([static fn() => new Faults(reorder: 1.1), static fn() => new Faults(crash: \NAN), static fn() => new Faults(crash: 1.0), static fn() => Simulation::run(static fn() => null, runs: 0)] as $nonsense) {
            try {
                $nonsense();
                self::fail('accepted');
            } catch (\ValueError $error) {
                self::assertNotSame('', $error->getMessage());
            }
        }
        \putenv('WEFT_SEED=tuesday');
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('WEFT_SEED must be a number, got "tuesday"');
        Simulation::run(static fn() => null);
    }

    private static function customer(string $id): StoreCustomer
    {
        return new StoreCustomer($id, "name_{$id}", 'name@example.org');
    }

    private static function storing(?\Closure $also = null): object
    {
        return new class ($also) {
            public function __construct(private readonly ?\Closure $also) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $transaction->execute('CREATE TABLE IF NOT EXISTS customers (id TEXT)');
                $transaction->execute('INSERT INTO customers (id) VALUES (?)', [$command->id]);
                $context->publish(new CustomerStored($command->id));
                $this->also === null || ($this->also)($command);
            }
        };
    }

    private static function listening(\Closure $listen): object
    {
        return new class ($listen) {
            public function __construct(private readonly \Closure $listen) {}

            #[EventListener]
            public function stored(CustomerStored $event, Context $context): void
            {
                ($this->listen)($event, $context);
            }
        };
    }
}
