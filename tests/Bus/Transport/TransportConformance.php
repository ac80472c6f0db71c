<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use PHPUnit\Framework\TestCase;
use Weft\Bus\DeadLetters;
use Weft\Bus\PublishException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;
use Weft\Sql\Transaction;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What every transport promises, as tests. */
abstract class TransportConformance extends TestCase
{
    protected const DEADLINE = 180.0;

    /** Seconds in which a message that was published would have arrived. */
    private const SOON = 0.3;

    /** Seconds, well below the second after which everybody looks by himself. */
    private const WOKEN = 0.7;

    /** Distinguishes the names of one test from those of others on a shared broker. */
    private string $unique;

    /** Connects to a broker; every call within one test to the same one. */
    abstract protected function connect(): Transport;

    protected function setUp(): void
    {
        $this->unique = \bin2hex(\random_bytes(4));
    }

    public function testAMessageReachesEveryQueueBoundToItsTypeAndNoOther(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue('one'), [$this->type('a'), $this->type('b')]);
            $transport->declare($this->queue('two'), [$this->type('a')]);
            $transport->declare($this->queue('three'), [$this->type('c')]);

            $transport->publish([$this->message('a', '1'), $this->message('b', '2'), $this->message('nobody', '3')]);

            self::assertSame(['1', '2'], $this->drain($transport, 'one'));
            self::assertSame(['1'], $this->drain($transport, 'two'));
            self::assertSame([], $this->drain($transport, 'three'));
        });
    }

    public function testBytesHeadersAndTypeArriveUnchanged(): void
    {
        $this->on(function (Transport $transport): void {
            $bodies = ['', 'Zoë', \implode('', \array_map('chr', \range(0, 255))), "\xff\xfe", '{"a":"b"}', \random_bytes(1_000_000)];
            $headers = ['message-id' => 'id-1', 'correlation-id' => 'c', 'causation-id' => 'k', 'traceparent' => '00-1-2-01', 'tracestate' => 'a=b,c=d',
                'content-type' => 'application/json', 'schema-version' => '3', 'weft-kind' => 'command', 'x-own' => 'Zoë "quoted" \\ / 1', 'x-empty' => ''];
            $transport->declare($this->queue(), [$this->type('a')]);

            $transport->publish(\array_map(fn(string $body): Outgoing => new Outgoing($this->type('a'), $body, $headers), $bodies));

            $deliveries = $this->take($transport->consume($this->queue(), 10), \count($bodies));
            self::assertSame($bodies, \array_column($deliveries, 'body'));
            foreach ($deliveries as $delivery) {
                self::assertEquals($headers, $delivery->headers);
                self::assertSame($this->type('a'), $delivery->type);
                self::assertFalse($delivery->redelivered);
            }
        });
    }

    public function testABodyOfTenMegabytesArrivesAndIsDeadLetteredUnchanged(): void
    {
        $this->on(function (Transport $transport): void {
            $body = \random_bytes(10_000_000);
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([new Outgoing($this->type('a'), $body, ['message-id' => '1'])]);

            $consumer = $transport->consume($this->queue(), 10);
            [$delivery] = $this->take($consumer, 1);
            self::assertTrue($body === $delivery->body);
            $consumer->deadLetter($delivery, $delivery->headers);
            [$letter] = $this->take($transport->consume(DeadLetters::queueOf($this->queue()), 10), 1);
            self::assertTrue($body === $letter->body);
        });
    }

    public function testThousandsPublishedAtOnceArriveCompleteAndInOrder(): void
    {
        $this->on(function (Transport $transport): void {
            $bodies = \array_map('strval', \range(1, 2_600));
            $transport->declare($this->queue(), [$this->type('a')]);

            $transport->publish(\array_map(fn(string $body): Outgoing => $this->message('a', $body), $bodies));

            self::assertSame($bodies, $this->drain($transport));
        });
    }

    public function testADeletedQueueIsGoneWithItsMessagesBindingsAndDeadLettersAndIsMadeAnewEmpty(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->delete($this->queue());
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $transport->put(DeadLetters::queueOf($this->queue()), [$this->message('a', '2')]);
            $transport->delete($this->queue());
            foreach ([$this->queue(), DeadLetters::queueOf($this->queue())] as $queue) {
                try {
                    $transport->depth($queue);
                    self::fail("{$queue} is there");
                } catch (UndefinedQueueException) {
                }
            }
            $transport->publish([new Outgoing($this->type('a'), '3', [])]);
            $transport->declare($this->queue(), []);
            $transport->publish([new Outgoing($this->type('a'), '4', [])]);

            self::assertSame([0, 0], [$transport->depth($this->queue()), $transport->depth(DeadLetters::queueOf($this->queue()))]);
        });
    }

    public function testACommandIsUnroutableAgainWhenAnotherProcessHasDeletedItsQueue(): void
    {
        $this->on(function (Transport $transport): void {
            $other = $this->connect();
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->declare($this->queue('two'), [$this->type('b')]);
            $transport->publish([$this->message('a', '1', mustRoute: true)]);
            $other->delete($this->queue());
            foreach ([[$this->message('a', '2', mustRoute: true)], [$this->message('b', '3', mustRoute: true), $this->message('a', '4', mustRoute: true)]] as $messages) {
                try {
                    $transport->publish($messages);
                    self::fail('published');
                } catch (UnroutableMessageException $unroutable) {
                    self::assertStringContainsString($transport instanceof RabbitMq ? 'No queue' : $this->type('a'), $unroutable->getMessage());
                }
            }
            if ($transport instanceof DatabaseTransport) {
                try {
                    $transport->database()->transaction(fn(Transaction $transaction) => $transport->publishIn($transaction, null, $messages));
                    self::fail('published');
                } catch (UnroutableMessageException $unroutable) {
                    self::assertStringContainsString($this->type('a'), $unroutable->getMessage());
                }
            }
            self::assertSame(['3'], $this->drain($transport, 'two'));
            $other->close();
        });
    }

    public function testUnconfirmedMessagesArriveAsWell(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);

            $transport->publish([$this->message('a', '1'), $this->message('a', '2')], confirmed: false);

            self::assertSame(['1', '2'], \array_column($this->take($transport->consume($this->queue(), 10), 2), 'body'));
        });
    }

    public function testAnEmptyBatchIsNothing(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);

            $transport->publish([]);

            self::assertSame(0, $transport->depth($this->queue()));
        });
    }

    public function testDeclaringAgainAddsBindingsAndKeepsMessages(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);

            $transport->declare($this->queue(), [$this->type('b')]);
            $transport->publish([$this->message('a', '2'), $this->message('b', '3')]);

            self::assertSame(['1', '2', '3'], $this->drain($transport));
        });
    }

    public function testAMessageThatMustBeRoutedAndIsNotIsAnErrorThatNamesItsType(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            try {
                $transport->publish([$this->message('a', '1'), $this->message('nobody', '2', mustRoute: true), $this->message('a', '3')]);
                self::fail('published');
            } catch (UnroutableMessageException $unroutable) {
                self::assertStringContainsString($this->type('nobody'), $unroutable->getMessage());
            }
            self::assertSame(['1', '3'], $this->drain($transport), 'the others are published');
        });
    }

    public function testNoMoreThanThePrefetchIsUnsettledAtOnce(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish(\array_map(fn(int $i): Outgoing => $this->message('a', (string) $i), \range(1, 10)));
            $consumer = $transport->consume($this->queue(), 3);
            $first = $this->take($consumer, 3);

            self::assertSame([], $consumer->next(10, wait: self::SOON), 'the prefetch is used up');

            $consumer->ack($first[0]);
            $consumer->ack($first[2]);
            self::assertSame(['4', '5'], \array_column($this->take($consumer, 2), 'body'));
            self::assertSame([], $consumer->next(10, wait: self::SOON));
        });
    }

    public function testNextReturnsNoMoreThanItIsAskedFor(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2'), $this->message('a', '3')]);
            $consumer = $transport->consume($this->queue(), 10);

            self::assertSame(['1'], \array_column($consumer->next(1), 'body'));
            self::assertSame(['2', '3'], \array_column($this->take($consumer, 2), 'body'));
        });
    }

    public function testAWaitingConsumerIsWokenByAMessageOfItsOwnConnectionAndOfAnother(): void
    {
        $this->on(function (Transport $transport): void {
            $other = $this->connect();
            $transport->declare($this->queue(), [$this->type('a')]);
            foreach ([$transport, $other] as $publisher) {
                // Once is enough, for a busy machine: by looking now and then none of them would be found so soon.
                for ($seconds = \INF, $tries = 0; $seconds > self::WOKEN && $tries < 20; $tries++) {
                    $seconds = \min($seconds, $this->awaited($transport, $publisher));
                }
                self::assertLessThan(self::WOKEN, $seconds, 'woken, not found by looking now and then');
            }
            $other->close();
        });
    }

    /** @return float how many seconds after the beginning of its wait a consumer gets a message that is published after 0.2 */
    private function awaited(Transport $transport, Transport $publisher): float
    {
        $consumer = $transport->consume($this->queue(), 10);
        $started = \microtime(true);
        $publishing = async(function () use ($publisher): void {
            delay(0.2);
            $publisher->publish([$this->message('a', 'late')]);
        });
        [$delivery] = $consumer->next(10);
        $seconds = \microtime(true) - $started;
        self::assertSame('late', $delivery->body);
        self::assertGreaterThan(0.15, $seconds);
        $consumer->ack($delivery);
        $publishing->await();
        $consumer->close();

        return $seconds;
    }

    public function testWaitingEndsWhenItsTimeIsOver(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $consumer = $transport->consume($this->queue(), 10);
            $started = \microtime(true);

            self::assertSame([], $consumer->next(10, wait: 0.1));
            self::assertGreaterThan(0.08, \microtime(true) - $started);
            self::assertSame([], $consumer->next(10, wait: 0.0));
        });
    }

    public function testAnAcknowledgedMessageIsNotRedelivered(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish(\array_map(fn(int $i): Outgoing => $this->message('a', (string) $i), \range(1, 50)));
            $consumer = $transport->consume($this->queue(), 50);
            foreach ($this->take($consumer, 50) as $index => $delivery) {
                if ($index % 2 === 0) {
                    $consumer->ack($delivery);
                }
            }
            $consumer->close();

            self::assertSame(\array_map('strval', \range(2, 50, 2)), $this->drain($transport));
            self::assertSame(0, $transport->depth($this->queue()));
        });
    }

    public function testUnacknowledgedMessagesAreRedeliveredWhenTheConsumerCloses(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2')]);
            $consumer = $transport->consume($this->queue(), 10);
            $this->take($consumer, 2);
            self::assertSame(0, $transport->depth($this->queue()), 'delivered messages are not ready');

            $consumer->close();

            $again = $this->take($transport->consume($this->queue(), 10), 2);
            self::assertSame([['1', true], ['2', true]], \array_map(static fn(Delivery $d): array => [$d->body, $d->redelivered], $again));
        });
    }

    public function testUnacknowledgedMessagesAreRedeliveredWhenTheConnectionCloses(): void
    {
        $this->on(function (Transport $transport): void {
            $other = $this->connect();
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $this->take($transport->consume($this->queue(), 10), 1);

            if ($other !== $transport) {
                $transport->close();
            } else {
                // One broker inside the process: closing it closes every consumer.
                $other->close();
            }

            self::assertTrue($this->take($other->consume($this->queue(), 10), 1)[0]->redelivered);
            $other->close();
        });
    }

    public function testARequeuedMessageComesBackMarked(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 1);

            $consumer->requeue($this->take($consumer, 1)[0]);

            $again = $this->take($consumer, 1)[0];
            self::assertSame(['1', true], [$again->body, $again->redelivered]);
            $consumer->ack($again);
            self::assertSame([], $consumer->next(1, wait: self::SOON));
        });
    }

    public function testTwoConsumersShareAQueueWithoutSharingAMessage(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish(\array_map(fn(int $i): Outgoing => $this->message('a', (string) $i), \range(1, 200)));
            $consumers = [$transport->consume($this->queue(), 7), $transport->consume($this->queue(), 11)];
            $seen = [[], []];
            $tasks = [];
            foreach ($consumers as $index => $consumer) {
                $tasks[] = async(function () use ($consumer, $index, &$seen): void {
                    while (\count($seen[0]) + \count($seen[1]) < 200) {
                        foreach ($consumer->next(5, wait: 0.2) as $delivery) {
                            $seen[$index][] = (int) $delivery->body;
                            $consumer->ack($delivery);
                        }
                        // The first batch of the other one may take longer.
                        do {
                            delay(0.001);
                        } while ($seen[$index] !== [] && $seen[1 - $index] === []);
                    }
                    // One that comes twice would come now.
                    foreach ($consumer->next(5, wait: self::SOON) as $delivery) {
                        $seen[$index][] = (int) $delivery->body;
                    }
                });
            }
            foreach ($tasks as $task) {
                $task->await();
            }
            $all = [...$seen[0], ...$seen[1]];
            \sort($all);
            self::assertSame(\range(1, 200), $all);
            self::assertNotSame([], $seen[0]);
            self::assertNotSame([], $seen[1]);
        });
    }

    public function testAnAcknowledgementCanPublish(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->declare($this->queue('next'), [$this->type('b')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 1);

            $consumer->ack($this->take($consumer, 1)[0], [$this->message('b', '2'), $this->message('b', '3')]);

            self::assertSame(['2', '3'], $this->drain($transport, 'next'));
            $consumer->close();
            self::assertSame(0, $transport->depth($this->queue()));
        });
    }

    public function testAMessageIsNotAcknowledgedWhenWhatItLedToCannotBePublished(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 1);
            try {
                $consumer->ack($this->take($consumer, 1)[0], [$this->message('nobody', '2', mustRoute: true)]);
                self::fail('acknowledged');
            } catch (UnroutableMessageException) {
            }
            $consumer->close();

            self::assertSame(['1'], $this->drain($transport));
        });
    }

    public function testADeadLetteredMessageLiesInTheDeadLetterQueueWithItsBytesAndTheNewHeaders(): void
    {
        $this->on(function (Transport $transport): void {
            $body = "\x00\xffnot json";
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([new Outgoing($this->type('a'), $body, ['message-id' => '1', 'weft-kind' => 'command'])]);
            $consumer = $transport->consume($this->queue(), 1);

            $consumer->deadLetter($this->take($consumer, 1)[0], ['message-id' => '1', 'weft-error-message' => 'no', 'weft-kind' => 'command']);

            self::assertSame(1, $transport->depth("{$this->queue()}.dead"));
            $deadLettered = $this->take($transport->consume("{$this->queue()}.dead", 1), 1)[0];
            self::assertSame([$body, $this->type('a')], [$deadLettered->body, $deadLettered->type]);
            self::assertEquals(['message-id' => '1', 'weft-error-message' => 'no', 'weft-kind' => 'command'], $deadLettered->headers);
            $consumer->close();
            self::assertSame(0, $transport->depth($this->queue()));
        });
    }

    public function testAMessageThatCannotBeDeadLetteredStaysWhereItIs(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([new Outgoing($this->type('a'), '{}', [])]);
            $first = $transport->consume($this->queue(), 1);
            $first->deadLetter($this->take($first, 1)[0], []);
            $first->close();

            // A dead-letter queue has none of its own.
            $consumer = $transport->consume("{$this->queue()}.dead", 1);
            $delivery = $this->take($consumer, 1)[0];
            try {
                $consumer->deadLetter($delivery, []);
                self::fail('parked');
            } catch (PublishException) {
            }
            $consumer->close();
            // A replicated queue takes a moment until it knows.
            self::assertCount(1, $this->drain($transport, 'queue', '.dead'));
        });
    }

    public function testAnEventCanBePublishedBeforeAnyQueueIsDeclared(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->publish([new Outgoing($this->type('nobody'), '{}', [])]);
            $transport->publish([new Outgoing($this->type('nobody'), '{}', [])], confirmed: false);
            $this->addToAssertionCount(1);
        });
    }

    public function testAQueueNobodyDeclaredIsAnErrorThatNamesIt(): void
    {
        $this->on(function (Transport $transport): void {
            foreach ([fn() => $transport->consume('missing-' . $this->queue(), 1), fn() => $transport->depth('missing-' . $this->queue())] as $call) {
                try {
                    $call();
                    self::fail('found');
                } catch (UndefinedQueueException $undefined) {
                    self::assertStringContainsString('missing-' . $this->queue(), $undefined->getMessage());
                }
            }
        });
    }

    public function testStoppingEndsAWaitAndLetsDeliveriesBeSettled(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 10);
            $delivery = $this->take($consumer, 1)[0];
            $stopper = async(function () use ($consumer): void {
                delay(0.1);
                $consumer->stop();
            });

            self::assertSame([], $consumer->next(10));
            $stopper->await();
            $transport->publish([$this->message('a', '2')]);
            $consumer->ack($delivery);
            $consumer->close();

            self::assertSame(['2'], $this->drain($transport));
        });
    }

    public function testAQueueIsConsumedUntilItsConsumersHaveClosed(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->declare($this->queue('other'), [$this->type('b')]);
            $transport->publish([$this->message('a', '1'), $this->message('a', '2')]);
            self::assertFalse($transport->isConsumed($this->queue()));
            $consumers = [$transport->consume($this->queue(), 1), $transport->consume($this->queue(), 1)];
            foreach ($consumers as $consumer) {
                $this->take($consumer, 1);
            }
            foreach ($consumers as $consumer) {
                self::assertTrue($transport->isConsumed($this->queue()));
                self::assertFalse($transport->isConsumed($this->queue('other')));
                $consumer->close();
            }
            while ($transport->isConsumed($this->queue())) {
                delay(0.01);
            }
            self::assertEqualsCanonicalizing(['1', '2'], $this->drain($transport));
        });
    }

    public function testClosingTwiceIsNothing(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $consumer = $transport->consume($this->queue(), 10);
            $consumer->close();
            $consumer->close();
            $transport->close();
            $transport->close();
            $this->addToAssertionCount(1);
        });
    }

    /** @param \Closure(Transport): void $test */
    protected function on(\Closure $test): void
    {
        run(function () use ($test): void {
            $transport = $this->connect();
            try {
                timeout(self::DEADLINE, static fn() => $test($transport));
            } finally {
                $transport->close();
            }
        });
    }

    protected function queue(string $name = 'queue'): string
    {
        return "conformance-{$this->unique}-{$name}";
    }

    protected function type(string $name): string
    {
        return "conformance.{$this->unique}.{$name}";
    }

    protected function message(string $type, string $body, bool $mustRoute = false): Outgoing
    {
        return new Outgoing($this->type($type), $body, ['weft-kind' => 'command'], $mustRoute);
    }

    /** @return list<Delivery> */
    protected function take(Consumer $consumer, int $count): array
    {
        $taken = [];
        while (\count($taken) < $count) {
            $batch = $consumer->next($count - \count($taken), wait: 30.0);
            self::assertNotSame([], $batch, "only " . \count($taken) . " of {$count} messages arrived");
            \array_push($taken, ...$batch);
        }

        return $taken;
    }

    /** @return list<string> bodies of everything in the queue, acknowledged */
    protected function drain(Transport $transport, string $queue = 'queue', string $suffix = ''): array
    {
        $consumer = $transport->consume($this->queue($queue) . $suffix, 500);
        $bodies = [];
        do {
            $batch = $consumer->next(500, wait: self::SOON);
            foreach ($batch as $delivery) {
                $bodies[] = $delivery->body;
                $consumer->ack($delivery);
            }
        } while ($batch !== [] || $transport->depth($this->queue($queue) . $suffix) > 0);
        $consumer->close();

        return $bodies;
    }
}
