<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\PublicFailure;
use Weft\Bus\QueryHandler;
use Weft\Bus\RequestFailedException;
use Weft\Bus\RequestTimeoutException;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\UnroutableMessageException;
use Weft\Runtime\CancelledException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\Item;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\RecordingLogger;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

final class RequestTest extends BusTestCase
{
    use Servers;
    use TemporaryDatabase;

    /** @dataProvider timeoutsOutOfBounds */
    #[DataProvider('timeoutsOutOfBounds')]
    public function testATimeoutOutOfItsBoundsIsRefused(float $seconds, string $got): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("The timeout of a request must be above 0 and at most 1,000,000,000 seconds, got {$got}");
        Bus::connect('memory:')->request(self::customer(1), timeout: $seconds);
    }

    public static function timeoutsOutOfBounds(): iterable
    {
        yield 'none' => [0.0, '0'];
        yield 'longer than a life' => [1e10, '10000000000'];
        yield 'no number' => [\NAN, 'NAN'];
    }

    /** @dataProvider transports */
    #[DataProvider('transports')]
    public function testAThousandQueriesInFlightGetTheAnswerToEach(string $transport): void
    {
        $this->inRuntime(function () use ($transport): void {
            $arrived = 0;
            $bus = $this->connect($transport, new class ($arrived) {
                public function __construct(private int &$arrived) {}

                #[QueryHandler]
                public function price(ForgetCustomer $query): Item
                {
                    $this->arrived++;
                    for ($waited = 0; $this->arrived < 1000 && $waited < 3000; $waited++) {
                        delay(0.01);
                    }

                    return new Item("sku {$query->id}", 1.5, ['id' => $query->id]);
                }
            });
            $consumer = async(static fn() => $bus->consume(self::QUEUE, concurrency: 1000, options: new ConsumeOptions(prefetch: 1000, signals: false)));
            $asked = [];
            for ($id = 1; $id <= 1000; $id++) {
                $asked[$id] = static fn(): Item => $bus->request(new ForgetCustomer((string) $id), reply: Item::class, timeout: 200.0);
            }
            foreach (all($asked) as $id => $item) {
                self::assertSame(["sku {$id}", 1.5, ['id' => (string) $id]], [$item->sku, $item->price, $item->labels]);
            }
            self::assertSame(1000, $arrived);
            $bus->stop();
            $consumer->await();
            self::assertSame(0, $bus->queue(self::QUEUE)->depth());
            $bus->close();
        }, 240.0);
    }

    /** @return iterable<string, array{string}> */
    public static function transports(): iterable
    {
        yield 'memory' => ['memory'];
        yield 'SQLite' => ['sqlite'];
        yield 'RabbitMQ' => ['rabbitmq'];
        yield 'PostgreSQL' => ['postgres'];
    }

    public function testAnAnswerMayBeAMessageAScalarNullOrAnArray(): void
    {
        $this->inRuntime(function (): void {
            $answers = ['text', 7, 1.0, true, null, ['a' => [1, 2]], new CustomerStored('7')];
            $this->serving(new class ($answers) {
                public function __construct(private array $answers) {}

                #[QueryHandler]
                public function answer(ForgetCustomer $query): mixed
                {
                    return $this->answers[(int) $query->id];
                }
            }, static function (Bus $bus) use ($answers): void {
                foreach ($answers as $key => $expected) {
                    self::assertEquals($expected, $bus->request(new ForgetCustomer((string) $key)));
                }
                self::assertSame(1.0, $bus->request(new ForgetCustomer('2')));
            });
        });
    }

    public function testAReplyOfAnotherClassThanExpectedIsAnErrorThatNamesBoth(): void
    {
        $this->inRuntime(function (): void {
            $answers = [new CustomerStored('7'), null, 'text', ['a' => 1], self::customer(7)];
            $this->serving(new class ($answers) {
                public function __construct(private array $answers) {}

                #[QueryHandler]
                public function answer(ForgetCustomer $query): mixed
                {
                    return $this->answers[(int) $query->id];
                }
            }, static function (Bus $bus) use ($answers): void {
                foreach ([0, 1] as $key) {
                    self::assertEquals($answers[$key], $bus->request(new ForgetCustomer((string) $key), reply: CustomerStored::class));
                }
                foreach ([2 => 'string', 3 => 'array', 4 => StoreCustomer::class] as $key => $received) {
                    // Its class is known.
                    $key !== 4 || self::assertEquals(self::customer(7), $bus->request(new ForgetCustomer('4'), reply: StoreCustomer::class));
                    $failed = self::failed(static fn() => $bus->request(new ForgetCustomer((string) $key), reply: CustomerStored::class));
                    self::assertSame("customer.forget was answered with {$received}, but request(…, reply: …) expects " . CustomerStored::class, $failed->getMessage());
                }
            });
        });
    }

    /** @dataProvider lossyAnswers */
    #[DataProvider('lossyAnswers')]
    public function testAnArrayThatWouldLoseSomethingIsNoAnswer(mixed $answer, string $message): void
    {
        $this->inRuntime(function () use ($answer, $message): void {
            $this->serving(new class ($answer) {
                public function __construct(private readonly mixed $answer) {}

                #[QueryHandler]
                public function answer(ForgetCustomer $query): mixed
                {
                    return $this->answer;
                }
            }, static fn(Bus $bus) => self::assertStringContainsString($message, self::failed(static fn() => $bus->request(new ForgetCustomer('7')))->getMessage()));
        });
    }

    public static function lossyAnswers(): iterable
    {
        yield 'a message in a list' => [[new CustomerStored('7')], 'Cannot encode array: as a reply: at $[0] expected null, a scalar or an array of them, found ' . CustomerStored::class];
        yield 'an object without public properties' => [['at' => [1, new \DateTimeImmutable('2026-01-01')]], 'at $[*][1] expected null, a scalar or an array of them, found DateTimeImmutable'];
        yield 'bytes' => ["\xff", 'Cannot encode string: as a reply: at $ expected UTF-8 text (encode bytes as base64)'];
        yield 'a number that JSON does not have' => [['rate' => \INF], 'at $[*] expected a finite float, found INF'];
        yield 'a key of bytes' => [["\xff" => 1], 'Cannot encode array: as a reply: Malformed UTF-8'];
    }

    public function testACommandsAnswerLeavesWithItsEffectsAndADuplicateHasNone(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $database->execute('CREATE TABLE effects (id TEXT)');
            $broker = new Memory();
            $bus = Bus::connect($broker, $database)->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): string
                {
                    $transaction->execute('INSERT INTO effects VALUES (?)', [$command->id]);

                    return "stored {$command->id}";
                }
            });
            $this->consuming($bus, function () use ($bus, $database): void {
                self::assertSame('stored 7', $bus->request(self::customer(7)));
                self::assertSame(['7'], $database->execute('SELECT id FROM effects')->column());
                self::assertSame(1, $database->execute('SELECT count(*) FROM weft_inbox')->value());
            });
        });
    }

    public function testAHandlerThatFailsForGoodIsAnswered(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $bus = Bus::connect('memory:', options: new BusOptions(logger: $logger))->handlers(
                new class {
                    #[QueryHandler]
                    public function ask(ForgetCustomer $query): mixed
                    {
                        return match ($query->id) {
                            '1' => throw new \DomainException('no such customer at 10.0.0.7'),
                            '3' => throw new class ('the customer was removed') extends \DomainException implements PublicFailure {},
                            default => \NAN,
                        };
                    }
                },
                self::storing(static fn() => throw new \LogicException('never')),
            );
            $this->consuming($bus, function () use ($bus): void {
                $failed = self::failed(static fn() => $bus->request(new ForgetCustomer('1')));
                self::assertMatchesRegularExpression('/^customer.forget failed with DomainException: the log of the handler has the reason, with the id [\da-f-]{36}$/', $failed->getMessage());
                self::assertSame(\DomainException::class, $failed->error);
                self::assertStringContainsString(': the customer was removed', self::failed(static fn() => $bus->request(new ForgetCustomer('3')))->getMessage());
                self::assertStringContainsString('Cannot encode float: as a reply: at $ expected a finite float, found NAN', self::failed(static fn() => $bus->request(new ForgetCustomer('2')))->getMessage());
                self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count(), 'queries are not kept');

                self::assertSame(\LogicException::class, self::failed(static fn() => $bus->request(self::customer(7)))->error);
                self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->count(), 'commands are');
            });
            self::assertTrue($logger->hasRecord('warning', 'Query {type} {id} failed'));
            self::assertStringContainsString('no such customer at 10.0.0.7', \implode("\n", $logger->lines), 'the log has all of it');
        });
    }

    /** @dataProvider moments */
    #[DataProvider('moments')]
    public function testTheTimeOfARequestBoundsAllOfItWhileTheBrokerIsSilent(bool $isOpen, string $missing): void
    {
        $this->inRuntime(function () use ($isOpen, $missing): void {
            $dsn = $this->brokerDsn();
            $stop = $this->answering($dsn);
            $proxy = new Proxy('127.0.0.1', (int) \parse_url($dsn, \PHP_URL_PORT));
            $bus = Bus::connect((string) \preg_replace('~:\d+/~', ":{$proxy->port}/", $dsn));
            $isOpen && self::assertSame('1', $bus->request(new ForgetCustomer('1')));
            $proxy->hold();
            try {
                // Far less than what the client gives a silent broker.
                timeout(20.0, static fn() => $bus->request(new ForgetCustomer('2'), timeout: 0.2));
                self::fail('the broker does not answer');
            } catch (RequestTimeoutException $timedOut) {
                self::assertStringContainsString("arrived within 0.2 seconds: {$missing}", $timedOut->getMessage());
            }
            self::assertSame(0, self::waiting($bus));
            $proxy->release();
            self::assertSame('3', $bus->request(new ForgetCustomer('3')), 'the bus can go on');
            $bus->close();
            $proxy->stop();
            $stop();
        });
    }

    /** @return iterable<string, array{bool, string}> */
    public static function moments(): iterable
    {
        yield 'before the first request' => [false, 'the queue for replies could not be opened'];
        yield 'later' => [true, 'the broker has not confirmed it'];
    }

    public function testABusWhoseReplyQueueTheBrokerHasDeletedOpensAnother(): void
    {
        $this->inRuntime(function (): void {
            $stop = $this->answering($this->brokerDsn());
            $bus = Bus::connect($this->brokerDsn());
            self::assertSame('1', $bus->request(new ForgetCustomer('1')));
            $operator = RabbitMq::connect($this->brokerDsn());
            $operator->dropTemporary($lost = self::replyQueue($bus));
            $answer = null;
            while ($answer === null) {
                try {
                    $answer = $bus->request(new ForgetCustomer('2'));
                } catch (RequestFailedException $failed) {
                    // The broker tells the consumer after it has deleted the queue.
                    self::assertStringContainsString('Replies can no longer be received', $failed->getMessage());
                }
            }

            self::assertSame('2', $answer);
            self::assertNotSame($lost, self::replyQueue($bus));
            $operator->close();
            $bus->close();
            $stop();
        });
    }

    /** @return \Closure(): void ends it */
    private function answering(string $dsn): \Closure
    {
        $bus = Bus::connect($dsn)->handlers(new class {
            #[QueryHandler]
            public function ask(ForgetCustomer $query): string
            {
                return $query->id;
            }
        });
        $bus->queue(self::QUEUE)->declare();
        $consuming = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));

        return static function () use ($bus, $consuming): void {
            $bus->stop();
            $consuming->await();
            $bus->close();
        };
    }

    public function testATimeoutAndACancelledWaitLeaveNothingBehindAndALateReplyIsIgnored(): void
    {
        $this->inRuntime(function (): void {
            $answered = new \ArrayObject();
            $bus = Bus::connect('memory:')->handlers(new class ($answered) {
                public function __construct(private readonly \ArrayObject $answered) {}

                #[QueryHandler]
                public function ask(ForgetCustomer $query): string
                {
                    delay((float) $query->id);
                    $this->answered[] = $query->id;

                    return 'late';
                }
            });
            $this->consuming($bus, function () use ($bus, $answered): void {
                try {
                    $bus->request(new ForgetCustomer('3'), timeout: 0.1);
                    self::fail('there is no reply in time');
                } catch (RequestTimeoutException $timedOut) {
                    self::assertMatchesRegularExpression('/^No reply to customer.forget [\da-f-]{36} arrived within 0.1 seconds$/', $timedOut->getMessage());
                }
                self::assertCount(0, $answered, 'nobody has answered yet');
                $task = async(static fn() => $bus->request(new ForgetCustomer('0.2'), timeout: 10.0));
                delay(0.05);
                $task->cancel();
                try {
                    $task->await();
                    self::fail('it was cancelled');
                } catch (CancelledException) {
                }
                self::assertSame(0, self::waiting($bus));
                while (!\in_array('0.2', $answered->getArrayCopy(), true)) {
                    delay(0.01);
                }
                delay(0.1);
                self::assertSame('late', $bus->request(new ForgetCustomer('0.01')), 'late replies are nobody else\'s');
            });
        });
    }

    public function testARequestThatIsNotHandledInTimeIsNotHandledAtAll(): void
    {
        $this->inRuntime(function (): void {
            $calls = 0;
            $bus = Bus::connect('memory:')->handlers(self::storing(static function () use (&$calls): void {
                $calls++;
            }));
            $bus->queue(self::QUEUE)->declare();
            try {
                $bus->request(self::customer(7), timeout: 0.05);
                self::fail('nobody consumes');
            } catch (RequestTimeoutException) {
            }
            self::drain($bus);

            self::assertSame([0, 1], [$calls, $bus->admin()->stats()->expired]);
        });
    }

    public function testARequestInsideAHandlerLeavesAtOnceAndOutsideOfTheLoopOneIsRun(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:');
            $bus->handlers(new class ($bus) {
                public function __construct(private readonly Bus $bus) {}

                #[CommandHandler]
                public function store(StoreCustomer $command): string
                {
                    return $this->bus->request(new ForgetCustomer($command->id)) . '!';
                }

                #[QueryHandler]
                public function ask(ForgetCustomer $query, Context $context): string
                {
                    return "{$query->id} " . ($context->correlationId() === $context->messageId() ? 'alone' : 'caused');
                }
            });
            $this->consuming($bus, static fn() => self::assertSame('7 caused!', $bus->request(self::customer(7))));
        });

        $bus = Bus::connect("sqlite:{$this->directory}/outside.db")->handlers(new class {
            #[QueryHandler]
            public function ask(ForgetCustomer $query): string
            {
                return $query->id;
            }
        });
        $bus->queue(self::QUEUE)->declare();
        for ($round = 1; $round <= 2; $round++) {
            try {
                $bus->request(new ForgetCustomer('7'), timeout: 0.05);
                self::fail('nobody consumes');
            } catch (RequestTimeoutException) {
            }
        }
        $bus->close();
    }

    public function testAnUnroutableRequestAnUnknownReplyAndAClosedBusAreErrors(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:');
            try {
                $bus->request(self::customer(7));
                self::fail('no queue is declared for it');
            } catch (UnroutableMessageException) {
            }

            $broker = new Memory();
            $asking = Bus::connect($broker);
            $answering = Bus::connect($broker)->handlers(new class {
                #[QueryHandler]
                public function ask(ForgetCustomer $query): CustomerStored
                {
                    return new CustomerStored($query->id);
                }
            });
            $this->consuming($answering, function () use ($asking): void {
                self::assertStringContainsString('was answered with ' . CustomerStored::class . ', which is not registered', self::failed(static fn() => $asking->request(new ForgetCustomer('7')))->getMessage());
                self::assertSame('8', $asking->request(new ForgetCustomer('8'), reply: CustomerStored::class)->id);
            });
            $pending = async(static fn() => self::failed(static fn() => $asking->request(new ForgetCustomer('9')))->getMessage());
            delay(0.02);
            $asking->close();
            self::assertSame('The bus was closed before the reply arrived', $pending->await());
        });
    }

    public function testARequestForAnEventIsRefused(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers(self::listening(static fn() => null));
            // One that has the listener itself refuses to send it.
            $asking = Bus::connect($broker);
            $this->consuming($bus, static fn() => self::assertStringContainsString('is an event here; only commands and queries are answered', self::failed(static fn() => $asking->request(new CustomerStored('7')))->getMessage()));
        });
    }

    public function testAQueryThatCannotBeDecodedIsAnsweredAndNoDeadLetter(): void
    {
        $this->inRuntime(static function (): void {
            $broker = new Memory();
            $broker->declare('weft.replies.x', []);
            $bus = Bus::connect($broker)->handlers(new class {
                #[QueryHandler]
                public function ask(ForgetCustomer $query): string
                {
                    return $query->id;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing('customer.forget', '{', [Header::REPLY_TO => 'weft.replies.x', Header::MESSAGE_ID => 'q'])]);
            self::drain($bus);

            self::assertSame([0, 0, 1], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count(), $bus->admin()->stats()->failed]);
            [$reply] = $broker->consume('weft.replies.x', 1)->next(1, 1.0);
            self::assertSame([MessageDecodingException::class, 'q'], [$reply->headers[Header::ERROR_CLASS], $reply->headers[Header::REPLY_TO_MESSAGE]]);
        });
    }

    public function testAReplyIsPutIntoNoQueueButOneForReplies(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $broker = new Memory();
            $broker->declare('victim', []);
            $bus = Bus::connect($broker, options: new BusOptions(logger: $logger))->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(StoreCustomer::class, '{"id":"7","name":"a","email":"e"}', [Header::REPLY_TO => 'victim', Header::MESSAGE_ID => 'x'])]);
            self::drain($bus);

            self::assertSame([0, 1], [$bus->queue('victim')->depth(), $bus->admin()->stats()->commands]);
            self::assertTrue($logger->hasRecord('warning', 'which is not a reply queue'));
        });
    }

    /** @param \Closure(): mixed $ask */
    private static function failed(\Closure $ask): RequestFailedException
    {
        try {
            $ask();
        } catch (RequestFailedException $failed) {
            return $failed;
        }
        self::fail('the request should have failed');
    }

    private static function waiting(Bus $bus): int
    {
        return (fn(): int => $this->requests->waiting())->call($bus);
    }

    private static function replyQueue(Bus $bus): string
    {
        return (fn(): ?string => $this->queue)->call((fn(): object => $this->requests)->call($bus));
    }

    private function connect(string $transport, object $service): Bus
    {
        $bus = Bus::connect(match ($transport) {
            'memory' => 'memory:',
            'sqlite' => $this->dsn(),
            'rabbitmq' => $this->brokerDsn(),
            'postgres' => $this->databaseDsn(),
        })->handlers($service);
        $bus->queue(self::QUEUE)->declare();

        return $bus;
    }

    private function serving(object $service, \Closure $test): void
    {
        $bus = Bus::connect('memory:')->handlers($service);
        $this->consuming($bus, static fn() => $test($bus));
    }

    private function consuming(Bus $bus, \Closure $test): void
    {
        $bus->queue(self::QUEUE)->declare();
        $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
        $test();
        $bus->stop();
        $consumer->await();
    }
}
