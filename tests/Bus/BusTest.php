<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\LoggerInterface;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\DeadLetters;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\ListenersFailedException;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\NoHandlerException;
use Weft\Bus\Observer;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UnknownMessageTypeException;
use Weft\Bus\UnroutableMessageException;
use Weft\Runtime\Trace;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\signal;
use function Weft\timeout;
use function Weft\yieldNow;

require_once __DIR__ . '/Fixtures/ordered.php';

final class BusTest extends BusTestCase
{
    public function testLookingAtSomeDeadLettersTakesNoMoreFromTheBrokerAndOneIsFoundWhereverItIs(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $broker->declare(self::QUEUE, []);
            $put = static fn(int $from, int $count) => $broker->put(self::QUEUE . '.dead', \array_map(static fn(int $id): Outgoing => new Outgoing('Type', '{}', [Header::MESSAGE_ID => "id-{$id}"]), \range($from, $from + $count - 1)));
            for ($from = 0; $from < 51_000; $from += 1_000) {
                $put($from, 1_000);
            }
            $spy = new SpyTransport($broker);
            $letters = Bus::connect($spy)->queue(self::QUEUE)->deadLetters();

            self::assertCount(100, $letters->peek(100));
            self::assertSame([100], $spy->prefetches);
            self::assertSame('id-50999', $letters->peek(1, new DeadLetterFilter(id: 'id-50999'))[0]->messageId());
            self::assertSame(1, $letters->delete(new DeadLetterFilter(id: 'id-50998')));
            self::assertSame(50_999, $letters->count());
        });
    }

    /**
     * @dataProvider limitsOfDeadLetters
     *
     * @param \Closure(DeadLetters): mixed $use
     */
    #[DataProvider('limitsOfDeadLetters')]
    public function testALimitOfDeadLettersBelowOneIsRefused(\Closure $use, string $got): void
    {
        $this->inRuntime(function () use ($use, $got): void {
            $letters = Bus::connect('memory:')->queue(self::QUEUE)->deadLetters();
            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage("The limit of dead letters must be at least 1, got {$got}");
            $use($letters);
        });
    }

    /** @return iterable<string, array{\Closure(DeadLetters): mixed, string}> */
    public static function limitsOfDeadLetters(): iterable
    {
        yield 'peek' => [static fn(DeadLetters $letters): mixed => $letters->peek(-1), '-1'];
        yield 'retry' => [static fn(DeadLetters $letters): mixed => $letters->retry(limit: -5), '-5'];
        yield 'delete' => [static fn(DeadLetters $letters): mixed => $letters->delete(new DeadLetterFilter(), limit: 0), '0'];
    }

    /** @dataProvider emptyFilters */
    #[DataProvider('emptyFilters')]
    public function testAFilterOfDeadLettersWithAnEmptyTextIsRefused(string $criterion): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("The {$criterion} of a dead-letter filter must not be empty");
        new DeadLetterFilter(...[$criterion => '']);
    }

    public static function emptyFilters(): iterable
    {
        yield 'id' => ['id'];
        yield 'type' => ['type'];
        yield 'error' => ['error'];
        yield 'handler' => ['handler'];
    }

    /** @dataProvider turns */
    #[DataProvider('turns')]
    public function testABusThatIsClosedBeforeAHandlerHasBegunEnds(int $turns): void
    {
        $this->inRuntime(function () use ($turns): void {
            $handled = 0;
            $bus = Bus::connect($transport = new Memory())->handlers(self::storing(static function () use (&$handled): void {
                $handled++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            delay(0.01);
            $bus->send(self::customer(1));
            for ($turn = 0; $turn < $turns; $turn++) {
                yieldNow();
            }
            $bus->close();
            $consuming->await();

            self::assertSame(1, $handled + $transport->depth(self::QUEUE));
        });
    }

    /** How often others had their turn before the bus is closed: in one of them the worker has started a task that has not begun. */
    public static function turns(): iterable
    {
        for ($turns = 0; $turns < 6; $turns++) {
            yield [$turns];
        }
    }

    public function testACommandIsHandledAndTheEventItLeadsToReachesEveryListener(): void
    {
        $this->inRuntime(function (): void {
            $heard = [];
            $bus = Bus::connect('memory:')->handlers(
                self::storing(fn(StoreCustomer $command, Context $context) => $context->publish(new CustomerStored($command->id))),
                self::listening(function (CustomerStored $event) use (&$heard): void {
                    $heard[] = "first {$event->id}";
                }),
                self::alsoListening(function (CustomerStored $event) use (&$heard): void {
                    $heard[] = "second {$event->id}";
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));

            self::assertSame(2, self::drain($bus));
            self::assertSame(['first 7', 'second 7'], $heard);
            $progress = $bus->admin()->stats();
            self::assertSame([1, 1, 0, 0, 2, 0], [$progress->commands, $progress->events, $progress->failed, $progress->deadLettered, $progress->sent, $progress->inFlight]);
        });
    }

    public function testAPurgedQueueIsEmptyAndGoesOnWorking(): void
    {
        $this->inRuntime(function (): void {
            $heard = [];
            $bus = Bus::connect('memory:')->handlers(self::storing(function (StoreCustomer $command) use (&$heard): void {
                $heard[] = $command->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2500));

            self::assertSame(2500, $bus->queue(self::QUEUE)->purge());
            self::assertSame(0, $bus->queue(self::QUEUE)->depth());

            $bus->send(self::customer(7));
            self::drain($bus);
            self::assertSame(['7'], $heard);
        });
    }

    public function testIdsAndTraceAreHandedOnFromMessageToMessage(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $note = static function (Context $context) use (&$seen): void {
                $seen[] = ['id' => $context->messageId(), 'headers' => $context->headers(), 'own' => $context->trace()->traceparent,
                    'correlation' => $context->correlationId(), 'causation' => $context->causationId(), 'trace' => $context->trace()->traceId()];
            };
            $bus = Bus::connect('memory:')->handlers(
                self::storing(function (StoreCustomer $command, Context $context) use ($note): void {
                    $note($context);
                    $context->publish(new CustomerStored($command->id));
                }),
                self::listening(static fn(CustomerStored $event, Context $context) => $note($context)),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            [$command, $event] = $seen;
            self::assertMatchesRegularExpression('/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/', $command['id']);
            self::assertNotSame($command['id'], $event['id']);
            self::assertSame([$command['id'], $command['id']], [$command['correlation'], $event['correlation']]);
            self::assertSame([null, $command['id']], [$command['causation'], $event['causation']]);
            self::assertSame($command['trace'], $event['trace']);
            self::assertSame(\str_replace('-', '', $command['id']), $command['trace'], 'a conversation that began in no trace has its own id as one');
            self::assertNotSame($command['own'], $event['own']);
            self::assertMatchesRegularExpression('/^00-[\da-f]{32}-[\da-f]{16}-01$/', $command['own']);
            self::assertSame([Header::MESSAGE_ID => $command['id'], Header::KIND => 'command'], $command['headers']);
            self::assertSame([Header::MESSAGE_ID => $event['id'], Header::CORRELATION_ID => $command['id']], $event['headers']);
        });
    }

    public function testATraceThatCameFromElsewhereTravelsOnWithEveryMessage(): void
    {
        $this->inRuntime(function (): void {
            $own = $parent = null;
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers(
                self::storing(function (StoreCustomer $command, Context $context) use (&$own): void {
                    $own = $context->trace()->traceparent;
                    $context->publish(new CustomerStored($command->id));
                }),
                self::listening(function (CustomerStored $event, Context $context) use (&$parent): void {
                    $parent = $context->header(Header::TRACEPARENT);
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $headers = [Header::TRACEPARENT => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00', Header::KIND => 'command'];
            $broker->publish([new Outgoing(StoreCustomer::class, '{"id":"7","name":"Ada","email":"ada@example.org"}', $headers)]);
            self::drain($bus);

            self::assertStringStartsWith('00-0af7651916cd43dd8448eb211c80319c-', (string) $own);
            self::assertSame($own, $parent, 'the parent of the event is the span of the handler');
        });
    }

    public function testAConsumerWithALifetimeReturnsWhenItIsOverAndHandlersInFlightFinish(): void
    {
        $this->inRuntime(function (): void {
            $finished = 0;
            $bus = Bus::connect('memory:')->handlers(self::storing(function (StoreCustomer $command, Context $context) use (&$finished): void {
                delay(0.1);
                $finished++;
                $context->send(self::customer(2));
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));

            self::assertSame(1, $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopAfter: 0.05)));
            self::assertSame([1, 1], [$finished, $bus->queue(self::QUEUE)->depth()], 'what the handler sent is left for the next consumer');
        });
    }

    /**
     * @dataProvider numbersOutOfBounds
     *
     * @param \Closure(Bus): mixed $consume
     */
    #[DataProvider('numbersOutOfBounds')]
    public function testANumberOfAConsumerOutOfItsBoundsIsRefused(\Closure $consume, string $complaint): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($complaint);
        $this->inRuntime(static fn() => $consume(Bus::connect('memory:')));
    }

    /** @return iterable<string, array{\Closure(Bus): mixed, string}> */
    public static function numbersOutOfBounds(): iterable
    {
        yield 'no concurrency' => [static fn(Bus $bus) => $bus->consume(self::QUEUE, 0), 'at least 1 and at most 1000000, got 0'];
        yield 'concurrency' => [static fn(Bus $bus) => $bus->consume(self::QUEUE, \PHP_INT_MAX), 'at least 1 and at most 1000000, got 9223372036854775807'];
        yield 'prefetch' => [static fn(Bus $bus) => new ConsumeOptions(prefetch: 1_000_001), 'The prefetch of a consumer must be at most 1000000, got 1000001'];
        yield 'running time' => [static fn(Bus $bus) => new ConsumeOptions(stopAfter: 1.1e9), 'A consumer must run for more than 0 and at most 1000000000 seconds, got 1100000000'];
    }

    public function testAMessageContinuesTheTraceThatItsSenderIsIn(): void
    {
        $this->inRuntime(function (): void {
            $command = $event = null;
            $bus = Bus::connect('memory:')->handlers(
                self::storing(function (StoreCustomer $message, Context $context) use (&$command): void {
                    $command = $context->headers();
                    self::assertSame($context->trace(), Trace::current(), 'calls of the handler find its span');
                    $context->publish(new CustomerStored($message->id));
                }),
                self::listening(function (CustomerStored $message, Context $context) use (&$event): void {
                    $event = $context->headers();
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $request = Trace::continue('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'vendor=1');
            $request->run(static fn() => $bus->send(self::customer(7)));
            self::drain($bus);

            self::assertSame([$request->traceparent, 'vendor=1'], [$command[Header::TRACEPARENT] ?? null, $command[Header::TRACESTATE] ?? null]);
            self::assertSame([$request->traceId(), 'vendor=1'], [\substr($event[Header::TRACEPARENT] ?? '', 3, 32), $event[Header::TRACESTATE] ?? null]);
            self::assertNotSame($request->traceparent, $event[Header::TRACEPARENT] ?? null);
        });
    }

    public function testTheLoggerOfAHandlerNamesMessageAndTrace(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $trace = $id = null;
            $handler = new class (static function (Context $context) use (&$trace, &$id): void {
                [$trace, $id] = [$context->trace(), $context->messageId()];
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[CommandHandler]
                public function store(StoreCustomer $command, LoggerInterface $logger, Context $context): void
                {
                    ($this->note)($context);
                    $logger->info('by parameter', ['order' => 7]);
                    $context->logger()->info('by context', ['handler' => 'mine']);
                }
            };
            $bus = Bus::connect('memory:', options: new BusOptions(logger: $logger))->handlers($handler);
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            $own = ['trace_id' => $trace?->traceId(), 'span_id' => $trace?->spanId(), 'message_class' => StoreCustomer::class, 'message_id' => $id,
                'handler' => $handler::class . '::store', 'queue' => self::QUEUE];
            self::assertSame(['order' => 7] + $own, $logger->of('info')[0]['context']);
            self::assertEquals(['handler' => 'mine'] + $own, $logger->of('info')[1]['context']);
        });
    }

    /** @dataProvider traceparents */
    #[DataProvider('traceparents')]
    public function testATraceOfAnotherSystemIsContinuedAndAMalformedOneReplaced(string $traceparent, ?string $trace): void
    {
        $this->inRuntime(function () use ($traceparent, $trace): void {
            $seen = null;
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers(self::listening(function (CustomerStored $event, Context $context) use (&$seen): void {
                $seen = $context->trace()->traceparent;
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(CustomerStored::class, '{"id":"7"}', [Header::TRACEPARENT => $traceparent, Header::KIND => 'event'])]);
            self::drain($bus);

            self::assertMatchesRegularExpression('/^00-' . ($trace ?? '(?!0af765)[\da-f]{32}') . '-(?!b7ad6b7169203331)[\da-f]{16}-\d\d$/', (string) $seen);
        });
    }

    public static function traceparents(): iterable
    {
        yield 'valid' => ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00', '0af7651916cd43dd8448eb211c80319c'];
        yield 'newer version' => ['cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more', '0af7651916cd43dd8448eb211c80319c'];
        yield 'zero trace' => ['00-00000000000000000000000000000000-b7ad6b7169203331-01', null];
        yield 'invalid version' => ['ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', null];
        yield 'nonsense' => ['secret', null];
    }

    public function testMessagesOfAHandlerAreSentAfterItHasReturned(): void
    {
        $this->inRuntime(function (): void {
            $depth = null;
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers(
                self::storing(function (StoreCustomer $command, Context $context) use ($broker, &$depth): void {
                    $context->publish(new CustomerStored($command->id));
                    delay(0.05);
                    $depth = $broker->depth(self::QUEUE);
                }),
                self::listening(static fn() => null),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));

            self::assertSame(2, self::drain($bus));
            self::assertSame(0, $depth);
        });
    }

    public function testAFailedHandlerHasSentNothingAndItsMessageIsDeadLetteredWithTheError(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $bus = Bus::connect('memory:', options: new BusOptions(logger: $logger))->handlers(
                self::storing(function (StoreCustomer $command, Context $context): void {
                    $context->publish(new CustomerStored($command->id));
                    $command->id === '2' && throw new \DomainException('two is not allowed');
                }),
                self::listening(static fn() => null),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));

            self::assertSame(5, self::drain($bus), 'three commands and the events of two');

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame('{"id":"2","name":"name_2","email":"name@example.org"}', $letter->body);
            self::assertSame([\DomainException::class, 'two is not allowed', 1], [$letter->errorClass(), $letter->errorMessage(), $letter->attempts()]);
            self::assertSame(StoreCustomer::class, $letter->type);
            self::assertStringEndsWith('::store', $letter->failedHandlers()[0]);
            self::assertStringContainsString('BusTest.php:', $letter->headers[Header::ERROR_STACK]);
            self::assertStringNotContainsString('Scheduler', $letter->headers[Header::ERROR_STACK]);
            self::assertMatchesRegularExpression('/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z$/', $letter->headers[Header::FAILED_AT]);
            self::assertSame(self::QUEUE, $letter->headers[Header::FAILED_QUEUE]);
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->count(), 'looking leaves it there');
            self::assertTrue($logger->hasRecord('error', 'failed'));
            self::assertStringStartsWith('DomainException: two is not allowed at ' . __FILE__ . ':', $logger->of('error')[0]['context']['error']);
        });
    }

    public function testTheBusItselfKeepsWhatIsSentInsideAHandlerAndInTasksItStarts(): void
    {
        $this->inRuntime(function (): void {
            $heard = [];
            $bus = Bus::connect('memory:');
            $bus->handlers(
                self::storing(function (StoreCustomer $command) use ($bus): void {
                    $bus->publish(new CustomerStored("{$command->id} by the bus"));
                    async(static fn() => $bus->publishAll([new CustomerStored("{$command->id} by a task")]))->await();
                    $command->id === '2' && throw new \DomainException('no');
                }),
                self::listening(function (CustomerStored $event, Context $context) use (&$heard): void {
                    $heard[$event->id] = $context->causationId();
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2));
            self::drain($bus);

            self::assertSame(['1 by the bus', '1 by a task'], \array_keys($heard));
            self::assertNotContains(null, $heard, 'they are caused by the command');
        });
    }

    public function testItConsumesOutsideOfTheRuntimeAsWell(): void
    {
        $handled = 0;
        $bus = Bus::connect('memory:')->handlers(self::storing(function () use (&$handled): void {
            delay(0.001);
            $handled++;
        }));
        $bus->queue(self::QUEUE)->declare();
        $bus->sendAll(self::customers(5));

        self::assertSame([5, 5], [self::drain($bus), $handled]);
    }

    public function testPublishedAtOnceMeansThatAFailedHandlerHasPublished(): void
    {
        $this->inRuntime(function (): void {
            $told = [];
            $spy = new SpyTransport(new Memory());
            $heard = 0;
            $bus = Bus::connect($spy, options: new BusOptions(guarantee: DeliveryGuarantee::BestEffort))->handlers(
                self::storing(function (StoreCustomer $command, Context $context): void {
                    $context->publish(new CustomerStored($command->id));
                    throw new \DomainException('too late');
                }),
                self::listening(function () use (&$heard): void {
                    $heard++;
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            $spy->before = function (string $what) use (&$told): void {
                $told[] = $what;
            };
            self::drain($bus);

            self::assertSame('publish unconfirmed', $told[0]);
            self::assertSame(1, $heard);
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->count());
        });
    }

    public function testNeverMoreHandlersRunThanTheConcurrencyAndAsManyAsThatDo(): void
    {
        $this->inRuntime(function (): void {
            $running = $most = 0;
            $bus = Bus::connect('memory:')->handlers(self::storing(function () use (&$running, &$most): void {
                $most = \max($most, ++$running);
                delay(\mt_rand(0, 3) / 1000);
                $running--;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(300));

            self::assertSame(300, $bus->consume(self::QUEUE, concurrency: 7, options: new ConsumeOptions(prefetch: 50, stopWhenEmpty: true)));
            self::assertSame(7, $most);
        });
    }

    public function testNoMoreIsTakenFromTheBrokerThanThePrefetch(): void
    {
        $this->inRuntime(function (): void {
            $least = \PHP_INT_MAX;
            $broker = new Memory();
            $handled = 0;
            $bus = Bus::connect($broker)->handlers(self::storing(function () use ($broker, &$least, &$handled): void {
                $least = \min($least, $broker->depth(self::QUEUE) + $handled);
                delay(0.001);
                $handled++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(100));
            $bus->consume(self::QUEUE, concurrency: 3, options: new ConsumeOptions(prefetch: 5, stopWhenEmpty: true));

            self::assertGreaterThanOrEqual(95, $least);
        });
    }

    public function testHandlersRunWhileWhatOthersSentIsConfirmedUpToThePrefetch(): void
    {
        $this->inRuntime(function (): void {
            $order = [];
            $spy = new SpyTransport(new Memory());
            $bus = Bus::connect($spy)->handlers(self::storing(function (StoreCustomer $command) use (&$order): void {
                $order[] = "handled {$command->id}";
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(4));
            $spy->before = static function () use (&$order): void {
                // Three handlers run while none of them is acknowledged, and a fourth one has the time to.
                while (\count($order) < 3) {
                    delay(0.005);
                }
                delay(0.05);
                $order[] = 'acknowledged';
            };
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 3, stopWhenEmpty: true));

            self::assertSame(['handled 1', 'handled 2', 'handled 3', 'acknowledged'], \array_slice($order, 0, 4));
            self::assertSame(['acknowledged' => 4, 'handled 1' => 1, 'handled 2' => 1, 'handled 3' => 1, 'handled 4' => 1], self::counted($order));
            self::assertSame('acknowledged', $order[7]);
        });
    }

    /**
     * @param list<string> $words
     * @return array<string, int>
     */
    private static function counted(array $words): array
    {
        $counts = \array_count_values($words);
        \ksort($counts);

        return $counts;
    }

    public function testASlowHandlerDoesNotHoldUpTheOthers(): void
    {
        $this->inRuntime(function (): void {
            $order = [];
            $bus = Bus::connect('memory:')->handlers(self::storing(function (StoreCustomer $command) use (&$order): void {
                while ($command->id === '1' && \count($order) < 19) {
                    delay(0.005);
                }
                $order[] = (int) $command->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(20));
            $bus->consume(self::QUEUE, concurrency: 2, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([...\range(2, 20), 1], $order);
        });
    }

    /** @dataProvider unusable */
    #[DataProvider('unusable')]
    public function testAnUnhandleableMessageIsDeadLetteredWithItsOriginalBytes(string $type, string $body, array $headers, string $error, string $message): void
    {
        $this->inRuntime(function () use ($type, $body, $headers, $error, $message): void {
            $broker = new Memory();
            $handled = 0;
            $bus = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(classes: [CustomerStored::class])))->handlers(self::storing(function () use (&$handled): void {
                $handled++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->declare(self::QUEUE, [$type]);
            $broker->publish([new Outgoing($type, $body, $headers)]);
            $bus->send(self::customer(7));

            self::assertSame(2, self::drain($bus));
            self::assertSame(1, $handled, 'the worker goes on');
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([$type, $error, $body], [$letter->type, $letter->errorClass(), $letter->body]);
            self::assertStringContainsString($message, $letter->errorMessage());
            self::assertSame([], \array_diff_assoc($headers, $letter->headers), 'the original headers are there');
            self::assertSame([], $letter->failedHandlers());
        });
    }

    public static function unusable(): iterable
    {
        $command = [Header::KIND => 'command', Header::MESSAGE_ID => 'id-1'];
        yield 'no JSON' => [StoreCustomer::class, "\x00\xff{", $command, MessageDecodingException::class, 'not JSON'];
        yield 'nothing' => [StoreCustomer::class, '', $command, MessageDecodingException::class, 'not JSON'];
        yield 'missing field' => [StoreCustomer::class, '{"id":"7"}', $command, MessageDecodingException::class, '$.name'];
        yield 'wrong type' => [StoreCustomer::class, '{"id":7,"name":"","email":""}', $command, MessageDecodingException::class, '$.id expected string, found int'];
        yield 'ten megabytes' => [StoreCustomer::class, '{"id":"' . \str_repeat('x', 10_000_000) . '"}', $command, MessageDecodingException::class, '$.name'];
        yield 'newer schema' => [StoreCustomer::class, '{}', $command + [Header::SCHEMA_VERSION => '2'], MessageDecodingException::class, 'schema version 2 is newer than 1'];
        yield 'unknown type' => ['some.thing', '{}', [Header::KIND => 'event'], UnknownMessageTypeException::class, '"some.thing"'];
        yield 'no kind' => ['some.thing', '{}', [], UnknownMessageTypeException::class, '"some.thing"'];
        yield 'command without handler' => ['customer.forget', '{}', $command, NoHandlerException::class, '"customer.forget"'];
    }

    public function testAKnownEventWithoutListenerIsAcknowledged(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $bus = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(classes: [CustomerStored::class])));
            $broker->declare(self::QUEUE, [CustomerStored::class]);
            $bus->publish(new CustomerStored('7'));

            self::assertSame(1, self::drain($bus));
            self::assertSame([0, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            self::assertSame(1, $bus->admin()->stats()->events);
        });
    }

    public function testEveryListenerRunsAndTheOneThatFailsIsNamed(): void
    {
        $this->inRuntime(function (): void {
            $heard = $stored = 0;
            $bus = Bus::connect('memory:')->handlers(
                new Fixtures\FailingListener('first'),
                self::listening(function (CustomerStored $event, Context $context) use (&$heard): void {
                    $heard++;
                    $context->send(self::customer($event->id));
                }),
                self::storing(function () use (&$stored): void {
                    $stored++;
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('7'));
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([1, 1], [$heard, $stored], 'what the other listener sent has left');
            self::assertSame([Fixtures\FailingListener::class . '::stored'], $letter->failedHandlers());
            self::assertSame([\DomainException::class, 'first'], [$letter->errorClass(), $letter->errorMessage()]);
        });
    }

    public function testAllListenersThatFailAreNamed(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(new Fixtures\FailingListener('first'), self::listening(static fn() => throw new \LogicException('second')));
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('7'));
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertCount(2, $letter->failedHandlers());
            self::assertSame(ListenersFailedException::class, $letter->errorClass());
            self::assertStringContainsString('2 of 2 listeners failed', $letter->errorMessage());
            self::assertStringContainsString('first: first', $letter->errorMessage());
        });
    }

    public function testADetachedTaskSendsWhateverBecomesOfTheHandlerThatHasStartedIt(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:');
            $heard = 0;
            $bus = Bus::connect('memory:', $database);
            $bus->handlers(
                self::storing(static function () use ($bus): void {
                    $detached = detach(static fn() => async(static fn(): string => $bus->publish(new CustomerStored('detached')))->await());
                    async(static fn(): string => $bus->publish(new CustomerStored('in the scope')))->await();
                    $detached->await();
                    throw new \DomainException('the handler fails');
                }),
                self::listening(static function (CustomerStored $event) use (&$heard): void {
                    self::assertSame('detached', $event->id);
                    $heard++;
                }),
            )->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame([1, 1], [$heard, $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $database->close();
        });
    }

    public function testEachListenerHasAMessageOfItsOwn(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $listen = static function (CustomerStored $event) use (&$seen): void {
                $seen[] = \spl_object_id($event);
                // Kept, so that its id is not used again.
                $seen['kept'][] = $event;
            };
            $bus = Bus::connect('memory:')->handlers(self::listening($listen), self::alsoListening($listen));
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('7'));
            self::drain($bus);

            self::assertNotSame($seen[0], $seen[1]);
        });
    }

    public function testAMessageThatCannotBeDeadLetteredGoesBackToTheQueue(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $spy = new SpyTransport(new Memory());
            $spy->deadLetteringFails = 1;
            $redelivered = [];
            $bus = Bus::connect($spy, options: new BusOptions(logger: $logger))->handlers(self::storing(function (StoreCustomer $command, Context $context) use (&$redelivered): void {
                $redelivered[] = $context->redelivered();
                throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertSame([false, true], $redelivered);
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->count());
            self::assertTrue($logger->hasRecord('critical', 'could not be dead-lettered'));
            self::assertSame([2, 1], [$bus->admin()->stats()->failed, $bus->admin()->stats()->deadLettered]);
        });
    }

    public function testACommandNobodyHandlesCannotBeSentAndDeadLettersTheMessageWhoseHandlerSendsIt(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(self::storing(
                static fn(StoreCustomer $command, Context $context) => $context->send(new ForgetCustomer($command->id)),
            ));
            $bus->queue(self::QUEUE)->declare();
            try {
                $bus->send(new ForgetCustomer('7'));
                self::fail('sent');
            } catch (UnroutableMessageException $unroutable) {
                self::assertStringContainsString('customer.forget', $unroutable->getMessage());
            }
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertSame(UnroutableMessageException::class, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorClass());
        });
    }

    public function testACommandCannotBePublishedNorAnEventSent(): void
    {
        $this->inRuntime(function (): void {
            $listener = new class {
                #[EventListener]
                public function stored(CustomerStored $event): void {}
            };
            $failures = [];
            $bus = Bus::connect('memory:')->handlers($listener, self::storing(function (StoreCustomer $command, Context $context) use (&$failures): void {
                $failures[] = self::failure(fn() => $context->publish(new StoreCustomer('8', '', '')));
                $failures[] = self::failure(fn() => $context->send(new CustomerStored('8')));
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);
            $failures[] = self::failure(fn() => $bus->publish(new StoreCustomer('8', '', '')));
            $failures[] = self::failure(fn() => $bus->publishAll([new StoreCustomer('8', '', '')]));
            $failures[] = self::failure(fn() => $bus->send(new CustomerStored('8')));
            $failures[] = self::failure(fn() => $bus->request(new CustomerStored('8')));

            [$published, $sent] = [
                '/^' . \preg_quote(StoreCustomer::class) . ' is a command, handled by .*::store\(\): use send\(\) or request\(\) instead of publish\(\)$/s',
                '/^' . \preg_quote(CustomerStored::class) . ' is an event, handled by .*::stored\(\): use publish\(\) instead of send\(\)$/s',
            ];
            foreach ([$published, $sent, $published, $published, $sent, $sent] as $i => $expected) {
                self::assertMatchesRegularExpression($expected, $failures[$i]);
            }
            self::assertSame(0, $bus->queue(self::QUEUE)->depth());
        });
    }

    public function testConsumingWithoutHandlersIsWarnedOf(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            Bus::connect('memory:', options: new BusOptions(logger: $logger))->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertTrue($logger->has('Queue customers is consumed without handlers, every message is dead-lettered: register handlers with Bus::handlers()'));
        });
    }

    public function testAnEventNobodyListensToCanBePublished(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:');
            $bus->publish(new CustomerStored('7'));
            self::assertSame(1, $bus->admin()->stats()->sent);
        });
    }

    public function testAContextCannotSendAfterItsHandler(): void
    {
        $this->inRuntime(function (): void {
            $kept = null;
            $bus = Bus::connect('memory:')->handlers(self::storing(function (StoreCustomer $command, Context $context) use (&$kept): void {
                $kept = $context;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            $this->expectException(\Error::class);
            $this->expectExceptionMessage('has returned and cannot send ' . CustomerStored::class);
            $kept->publish(new CustomerStored('7'));
        });
    }

    public function testItStopsAfterAsManyMessagesAsItWasTold(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(self::storing(static fn() => delay(0.001)));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(50));

            self::assertSame(20, $bus->consume(self::QUEUE, concurrency: 3, options: new ConsumeOptions(limit: 20)));
            self::assertSame([20, 30], [$bus->admin()->stats()->commands, $bus->queue(self::QUEUE)->depth()]);
        });
    }

    public function testStoppingFinishesWhatIsInFlightAndLeavesTheRest(): void
    {
        $this->inRuntime(function (): void {
            $started = $finished = 0;
            $stopped = false;
            $bus = Bus::connect('memory:')->handlers(self::storing(function () use (&$started, &$finished, &$stopped): void {
                $started++;
                while (!$stopped) {
                    delay(0.005);
                }
                delay(0.05);
                $finished++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(50));
            $stopper = async(static function () use ($bus, &$started, &$stopped): void {
                while ($started < 4) {
                    delay(0.005);
                }
                $bus->stop();
                $stopped = true;
            });

            self::assertSame(4, $bus->consume(self::QUEUE, concurrency: 4));
            $stopper->await();
            self::assertSame([4, 4, 46], [$started, $finished, $bus->queue(self::QUEUE)->depth()]);
        });
    }

    /** @dataProvider stopSignals */
    #[DataProvider('stopSignals')]
    public function testASignalStopsItWhenWhatIsInFlightIsDone(int $signal): void
    {
        $this->inRuntime(function () use ($signal): void {
            $begun = $finished = 0;
            $told = false;
            $bus = Bus::connect('memory:')->handlers(self::storing(function () use (&$begun, &$finished, &$told, $signal): void {
                ++$begun === 2 && \posix_kill(\posix_getpid(), $signal);
                while (!$told) {
                    delay(0.005);
                }
                delay(0.05);
                $finished++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(10));
            detach(static function () use (&$told, $signal): void {
                signal($signal);
                $told = true;
            });

            self::assertSame(2, $bus->consume(self::QUEUE, concurrency: 2));
            self::assertSame([2, 8], [$finished, $bus->queue(self::QUEUE)->depth()]);
        });
    }

    public static function stopSignals(): iterable
    {
        yield 'SIGTERM' => [15];
        yield 'SIGINT' => [2];
    }

    public function testASecondSignalCancelsWhatIsInFlightAndRequeuesIt(): void
    {
        $this->inRuntime(function (): void {
            $cleaned = 0;
            $bus = Bus::connect('memory:')->handlers(self::storing(function () use (&$cleaned): void {
                try {
                    delay(60.0);
                } finally {
                    $cleaned++;
                }
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            $killer = async(static function (): void {
                foreach ([1, 2] as $_) {
                    delay(0.1);
                    \posix_kill(\posix_getpid(), 15);
                }
            });
            $started = \microtime(true);
            $bus->consume(self::QUEUE, concurrency: 2);
            $killer->await();

            self::assertLessThan(50.0, \microtime(true) - $started, 'not the minute of the handlers');
            self::assertSame([2, 3, 0], [$cleaned, $bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testAnObserverIsToldOfEveryMessage(): void
    {
        $this->inRuntime(function (): void {
            $observer = new class implements Observer {
                public array $told = [];

                public function succeeded(string $type, float $seconds): void
                {
                    $this->told[] = ['handled', $type, $seconds >= 0.02 && $seconds < 60.0];
                }

                public function failed(string $type, \Throwable $error, bool $deadLettered): void
                {
                    $this->told[] = ['failed', $type, $error->getMessage(), $deadLettered];
                }
            };
            $bus = Bus::connect('memory:', options: new BusOptions(observer: $observer))->handlers(self::storing(function (StoreCustomer $command): void {
                delay(0.03);
                $command->id === '2' && throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2));
            self::drain($bus);

            self::assertSame([['handled', StoreCustomer::class, true], ['failed', StoreCustomer::class, 'no', true]], $observer->told);
        });
    }

    public function testAnObserverAndALoggerThatFailChangeNothingOfWhatBecomesOfAMessage(): void
    {
        $this->inRuntime(function (): void {
            $observer = new class implements Observer {
                public function succeeded(string $type, float $seconds): void
                {
                    async(static fn() => throw new \LogicException('no metrics'));
                }

                public function failed(string $type, \Throwable $error, bool $deadLettered): void
                {
                    throw new \LogicException('no metrics');
                }
            };
            $logger = new class extends \Psr\Log\AbstractLogger {
                public function log($level, $message, array $context = []): void
                {
                    throw new \LogicException('disk full');
                }
            };
            $broker = new SpyTransport(new Memory());
            $bus = Bus::connect($broker, options: new BusOptions(logger: $logger, observer: $observer))->handlers(self::storing(function (StoreCustomer $command): void {
                $command->id === '2' && throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(5));
            $log = \ini_set('error_log', '/dev/null');
            try {
                self::assertSame(5, self::drain($bus));
            } finally {
                \ini_set('error_log', $log);
            }

            self::assertSame([4, 1, 1], [$bus->admin()->stats()->commands, $bus->admin()->stats()->failed, $bus->admin()->stats()->deadLettered]);
            self::assertSame(['no'], \array_map(static fn($letter) => $letter->errorMessage(), $bus->queue(self::QUEUE)->deadLetters()->peek()));
        });
    }

    /** @dataProvider waysToStop */
    #[DataProvider('waysToStop')]
    public function testConsumingThatIsStoppedWhileItBeginsEnds(string $stop, bool $ordered): void
    {
        $file = \sys_get_temp_dir() . '/weft-bus-' . \bin2hex(\random_bytes(6)) . '.sqlite';
        try {
            $this->inRuntime(function () use ($stop, $ordered, $file): void {
                $handled = 0;
                $database = Database::connect("sqlite://{$file}");
                for ($turns = 1; $turns < 60; $turns += 2) {
                    $bus = Bus::connect("sqlite://{$file}", $database)->handlers($ordered
                        ? new class {
                            #[CommandHandler]
                            public function deposit(Deposit $command): void {}
                        }
                        : self::storing(static fn() => null));
                    $consuming = async(static function () use ($bus, &$handled): void {
                        $handled += $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false));
                    });
                    for ($turn = 0; $turn < $turns; $turn++) {
                        yieldNow();
                    }
                    $bus->{$stop}();
                    timeout(30.0, static fn() => $consuming->await());
                    $bus->close();
                }
                self::assertSame(0, $handled);
                $database->close();
            }, 240.0);
        } finally {
            \exec('rm -rf ' . \escapeshellarg($file) . '*');
        }
    }

    public static function waysToStop(): iterable
    {
        yield 'stop' => ['stop', false];
        yield 'close' => ['close', false];
        yield 'stop, in order' => ['stop', true];
        yield 'close, in order' => ['close', true];
    }

    public function testClosingEndsConsumingAndRequeuesWhatIsInFlight(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $broker = new Memory();
            $begun = 0;
            $bus = Bus::connect($broker, options: new BusOptions(logger: $logger))->handlers(self::storing(static function () use (&$begun): void {
                $begun++;
                delay(60.0);
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 2));
            while ($begun < 2) {
                delay(0.01);
            }
            $bus->close();

            self::assertSame([2, 3, 0], [$consuming->await(), $bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            self::assertSame([], $logger->records);
        });
    }

    /** @dataProvider noQueues */
    #[DataProvider('noQueues')]
    public function testANameNoBrokerTakesForAQueueIsRefused(string $queue): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('1 to 250 bytes of UTF-8');

        Bus::connect('memory:')->queue($queue)->declare();
    }

    public static function noQueues(): iterable
    {
        yield 'empty' => [''];
        yield 'too long with its dead letters' => [\str_repeat('q', 251)];
        yield 'no text' => ["q\xff"];
        yield 'a text that databases do not take' => ["q\0"];
    }

    /** @dataProvider impossibleNumbers */
    #[DataProvider('impossibleNumbers')]
    public function testNumbersThatMakeNoSenseAreRefused(int $concurrency, ?int $prefetch, ?int $limit): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('at least 1');

        Bus::connect('memory:')->consume(self::QUEUE, $concurrency, options: new ConsumeOptions(prefetch: $prefetch, limit: $limit));
    }

    public static function impossibleNumbers(): iterable
    {
        yield 'concurrency' => [0, null, null];
        yield 'prefetch' => [1, 0, null];
        yield 'limit' => [1, 1, 0];
    }

    /** @dataProvider noDsns */
    #[DataProvider('noDsns')]
    public function testADsnOfNoBrokerIsRefusedWithoutRepeatingAPassword(string $dsn, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessageMatches("/{$message}$/");

        Bus::connect($dsn);
    }

    public static function noDsns(): iterable
    {
        yield 'no scheme' => ['guest@localhost', 'got one without a scheme'];
        yield 'another scheme' => ['redis://user:secret@localhost', 'got redis:'];
    }

    private static function failure(\Closure $attempt): string
    {
        try {
            $attempt();
        } catch (\Error $error) {
            return $error->getMessage();
        }

        return 'nothing failed';
    }
}
