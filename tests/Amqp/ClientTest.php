<?php

declare(strict_types=1);

namespace Weft\Tests\Amqp;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Amqp\AuthenticationException;
use Weft\Amqp\Binding;
use Weft\Amqp\Connection;
use Weft\Amqp\ConnectionClosedException;
use Weft\Amqp\ConnectionRefusedException;
use Weft\Amqp\Consumer;
use Weft\Amqp\Delivery;
use Weft\Amqp\Exchange;
use Weft\Amqp\ExchangeKind;
use Weft\InvalidDsnError;
use Weft\Amqp\Message;
use Weft\Amqp\Queue;
use Weft\Amqp\BrokerException;
use Weft\Amqp\State;
use Weft\Amqp\TlsException;
use Weft\Amqp\MessageReturnedException;
use Weft\UsageError;
use Weft\Amqp\VirtualHostNotFoundException;
use Weft\Runtime\TimeoutException;

use function Weft\async;
use function Weft\run;
use function Weft\timeout;

final class ClientTest extends TestCase
{
    /** Seconds a test waits for what must come. It only ends a hang. */
    private const DEADLINE = 60.0;
    /** Seconds a test watches that something does not come. */
    private const QUIET = 0.2;

    private string $url;
    private string $queue;
    private Connection $connection;

    protected function setUp(): void
    {
        $this->url = self::address('AMQP_URL');
        $this->queue = 'weft.test.client.' . \bin2hex(\random_bytes(4));
        $this->connection = Connection::connect($this->url);
    }

    protected function tearDown(): void
    {
        if (isset($this->connection)) {
            $this->connection->close();
            $cleanup = Connection::connect($this->url);
            $cleanup->deleteQueue($this->queue);
            $cleanup->close();
        }
    }

    public function testAMessageComesBackWithHeadersAndPropertiesOfAllTypes(): void
    {
        $headers = [
            'null' => null, 'true' => true, 'int' => \PHP_INT_MIN, 'float' => 0.1, 'text' => 'Zoë', 'bytes' => "\x00\xff",
            'list' => [1, 'two', [3.0]], 'map' => ['a' => ['b' => false]],
        ];
        $message = new Message(
            body: "a\x00\xff",
            headers: $headers,
            contentType: 'application/json',
            contentEncoding: 'identity',
            messageId: 'm1',
            correlationId: 'c1',
            replyTo: 'answers',
            type: 'order.stored',
            appId: 'shop',
            priority: 7,
            expiration: 60.5,
            timestamp: 1_700_000_000,
            persistent: false,
        );
        $exchange = "{$this->queue}.topic";
        $this->connection->declare(
            Binding::queue($exchange, $this->queue, 'order.*'),
            new Exchange($exchange, ExchangeKind::Topic, autoDelete: true),
            new Queue($this->queue),
        );

        $this->connection->publisher()->publish($message, $exchange, 'order.stored', mandatory: true);
        $delivery = $this->one($this->connection->consume($this->queue));

        self::assertEquals($message, $delivery->message);
        // RabbitMQ 4 sorts them.
        $came = $delivery->headers;
        \ksort($headers);
        \ksort($came);
        self::assertSame($headers, $came);
        self::assertSame("a\x00\xff", $delivery->body);
        self::assertSame([$exchange, 'order.stored', false, null], [$delivery->exchange, $delivery->routingKey, $delivery->redelivered, $delivery->malformed]);
    }

    public function testAnExchangeMayFeedAnotherOne(): void
    {
        [$first, $second] = ["{$this->queue}.first", "{$this->queue}.second"];
        $this->connection->declare(
            new Exchange($first, ExchangeKind::Fanout, autoDelete: true),
            new Exchange($second, 'direct', autoDelete: true, internal: true),
            new Queue($this->queue),
            Binding::exchange($first, $second),
            Binding::queue($second, $this->queue, 'key'),
        );

        $this->connection->publisher()->publish(new Message('through both'), $first, 'key', mandatory: true);

        self::assertSame(1, $this->connection->queueState($this->queue)->messages);
    }

    public function testADeletedExchangeIsGoneAndDeletingItAgainIsFine(): void
    {
        $exchange = "{$this->queue}.exchange";
        $this->connection->declare(new Exchange($exchange), new Queue($this->queue), Binding::queue($exchange, $this->queue, 'key'));

        $this->connection->deleteExchange($exchange);
        $this->connection->deleteExchange($exchange);

        $this->expectException(BrokerException::class);
        $this->expectExceptionMessage($exchange);
        $this->connection->declare(new Exchange($exchange, passive: true));
    }

    public function testAnExclusiveConsumerSharesItsQueueWithNobody(): void
    {
        $alone = $this->declared()->consume($this->queue, exclusive: true);
        try {
            $this->connection->consume($this->queue);
            self::fail('There are two consumers');
        } catch (BrokerException $refused) {
            self::assertStringContainsString($this->queue, $refused->getMessage());
        }
        $alone->close();

        $this->connection->consume($this->queue, exclusive: true)->close();
    }

    public function testArgumentsOfAConsumerReachTheBroker(): void
    {
        $ordinary = $this->declared()->consume($this->queue, prefetch: 10);
        $important = $this->connection->consume($this->queue, prefetch: 10, arguments: ['x-priority' => 10]);
        $messages = \array_map(static fn(int $i): Message => new Message((string) $i), \range(0, 9));
        $this->connection->publisher()->publishAll($messages, routingKey: $this->queue);

        $came = 0;
        while ($came < 10) {
            $came += \count(timeout(self::DEADLINE, static fn(): array => $important->next()));
        }
        self::assertNothingComes($ordinary);
        $this->expectException(UsageError::class);
        $this->connection->consume($this->queue, arguments: ['x-priority' => new \stdClass()]);
    }

    /** @dataProvider namesThatAreNoText */
    #[DataProvider('namesThatAreNoText')]
    public function testANameThatIsNotUtf8IsRefusedByName(string $what, callable $call): void
    {
        $this->declared();

        try {
            $call($this->connection);
            self::fail('It was taken');
        } catch (UsageError $error) {
            self::assertStringContainsString($what, $error->getMessage());
            self::assertStringContainsString('not UTF-8: byte 0xFF at offset 2', $error->getMessage());
        }
        self::assertSame(State::Connected, $this->connection->status()->state);
    }

    public static function namesThatAreNoText(): iterable
    {
        yield 'consume' => ['queue name', static fn(Connection $to) => $to->consume("no\xff")];
        yield 'state' => ['queue name', static fn(Connection $to) => $to->queueState("no\xff")];
        yield 'declare' => ['name', static fn(Connection $to) => $to->declare(new Queue("no\xff"))];
        yield 'bind' => ['routingKey', static fn(Connection $to) => $to->declare(Binding::queue('amq.direct', 'a', "no\xff"))];
        yield 'delete' => ['exchange name', static fn(Connection $to) => $to->deleteExchange("no\xff")];
        yield 'exchange' => ['exchange name', static fn(Connection $to) => $to->publisher()->publish(new Message(''), "no\xff")];
        yield 'key' => ['routing key', static fn(Connection $to) => $to->publisher()->publish(new Message(''), '', "no\xff")];
    }

    public function testADsnThatIsNotUtf8IsRefusedWithoutItsPassword(): void
    {
        $this->expectException(InvalidDsnError::class);
        $this->expectExceptionMessage('invalid AMQP DSN: it is not UTF-8: byte 0xFF at offset 17; percent-encode it');
        Connection::connect("amqp://app:hunter\xff@localhost");
    }

    public function testAWholeBatchIsConfirmedWhenPublishAllReturns(): void
    {
        $publisher = $this->declared()->publisher(window: 100);
        $messages = static function (): \Generator {
            for ($i = 0; $i < 5_000; $i++) {
                yield new Message((string) $i);
            }
        };

        $publisher->publishAll($messages(), routingKey: $this->queue);

        self::assertSame(5_000, $this->connection->queueState($this->queue)->messages);
        self::assertSame('0', $this->one($this->connection->consume($this->queue, 1))->body);
    }

    public function testMessagesFlushedWithoutConfirmsArriveInOrder(): void
    {
        $publisher = $this->declared()->publisher(confirm: false);
        $numbers = \array_map(\strval(...), \range(0, 999));

        $publisher->publishAll(\array_map(static fn(string $i): Message => new Message($i), $numbers), routingKey: $this->queue);
        $publisher->flush();

        // RabbitMQ counts a queue ahead of what still waits to enter it: only receiving them tells.
        $consumer = $this->connection->consume($this->queue, 1_000);
        $bodies = [];
        while (\count($bodies) < 1_000) {
            \array_push($bodies, ...self::bodies(run(static fn(): array => timeout(self::DEADLINE, $consumer->next(...)))));
        }
        self::assertSame($numbers, $bodies);
    }

    public function testAMandatoryMessageThatReachesNoQueueIsAFailure(): void
    {
        $publisher = $this->declared()->publisher();
        $lost = new Message('lost');

        foreach (['publish' => $lost, 'publishAll' => [$lost]] as $method => $what) {
            try {
                $publisher->$method($what, routingKey: 'weft.nowhere', mandatory: true);
                self::fail("$method() did not tell");
            } catch (MessageReturnedException $unroutable) {
                self::assertStringContainsString('"weft.nowhere"', $unroutable->getMessage());
                self::assertSame(312, $unroutable->getCode());
            }
        }
        $publisher->publishAll([new Message('found')], routingKey: $this->queue, mandatory: true);
        self::assertSame(1, $this->connection->queueState($this->queue)->messages);
    }

    public function testTheFailureOfABatchIsNotToldToAnother(): void
    {
        $publisher = $this->declared()->publisher(window: 10);
        $batch = static function (string $queue) use ($publisher): string {
            try {
                $publisher->publishAll(\array_fill(0, 200, new Message('x')), routingKey: $queue, mandatory: true);
                return 'confirmed';
            } catch (MessageReturnedException) {
                return 'unroutable';
            }
        };

        $told = run(function () use ($batch): array {
            $tasks = [async($batch, 'weft.nowhere'), async($batch, $this->queue), async($batch, 'weft.nowhere')];

            return \array_map(static fn($task): string => $task->await(), $tasks);
        });

        self::assertSame(['unroutable', 'confirmed', 'unroutable'], $told);
    }

    public function testPublishingToAnExchangeThatDoesNotExistIsRefusedByName(): void
    {
        $this->expectException(BrokerException::class);
        $this->expectExceptionMessage('weft.no.exchange');

        $this->connection->publisher()->publish(new Message('x'), 'weft.no.exchange');
    }

    public function testPrefetchBoundsWhatIsDelivered(): void
    {
        $this->filled(10);
        $consumer = $this->connection->consume($this->queue, prefetch: 3);

        run(function () use ($consumer): void {
            $taken = [];
            while (\count($taken) < 3) {
                \array_push($taken, ...timeout(self::DEADLINE, static fn(): array => $consumer->next(100)));
            }
            self::assertSame(['0', '1', '2'], self::bodies($taken));
            self::assertNothingComes($consumer);

            $consumer->ack($taken[0]);
            self::assertSame(['3'], self::bodies(timeout(self::DEADLINE, static fn(): array => $consumer->next(100))));
        });
    }

    public function testAWaitThatIsCancelledLosesNoDelivery(): void
    {
        $consumer = $this->declared()->consume($this->queue);

        run(function () use ($consumer): void {
            self::assertNothingComes($consumer);
            $this->connection->publisher()->publish(new Message('late'), routingKey: $this->queue);
            self::assertSame('late', $this->one($consumer)->body);
        });
    }

    public function testNackGivesADeliveryBackAndRejectDoesNot(): void
    {
        $this->filled(1);
        $consumer = $this->connection->consume($this->queue);

        $first = $this->one($consumer);
        self::assertFalse($first->redelivered);
        self::assertTrue($consumer->nack($first));
        $second = $this->one($consumer);
        self::assertTrue($second->redelivered);
        self::assertSame('0', $second->body);
        self::assertTrue($consumer->reject($second));
        self::assertFalse($consumer->ack($second), 'it was settled before');
        $consumer->close();

        self::assertSame(0, $this->connection->queueState($this->queue)->messages);
    }

    public function testAClosedConsumerGivesBackWhatWasNotSettled(): void
    {
        $this->filled(2);
        $consumer = $this->connection->consume($this->queue);
        $consumer->ack($this->one($consumer));
        $consumer->flush();
        $consumer->close();

        self::assertSame(1, $this->connection->queueState($this->queue)->messages);
        $this->expectException(UsageError::class);
        $consumer->next();
    }

    public function testALoopEndsWhenItsConsumerIsCancelled(): void
    {
        $this->filled(5);
        $consumer = $this->connection->consume($this->queue);

        $seen = [];
        foreach ($consumer as $delivery) {
            $consumer->ack($delivery);
            $seen[] = $delivery->body;
            if (\count($seen) === 5) {
                $consumer->cancel();
            }
        }

        self::assertSame(['0', '1', '2', '3', '4'], $seen);
    }

    public function testABodyOfTenMegabytesArrivesWhole(): void
    {
        $body = \str_repeat(\random_bytes(1_024), 10_240);
        $this->declared()->publisher()->publish(new Message($body), routingKey: $this->queue);

        $received = $this->one($this->connection->consume($this->queue))->body;

        self::assertSame([\strlen($body), \md5($body)], [\strlen($received), \md5($received)]);
    }

    public function testARefusedRedeclarationNamesTheQueueAndTheConnectionGoesOn(): void
    {
        $this->declared();
        try {
            $this->connection->declare(new Queue($this->queue, durable: false));
            self::fail('it was accepted');
        } catch (BrokerException $refused) {
            self::assertStringContainsString("\"{$this->queue}\"", $refused->getMessage());
            self::assertSame(406, $refused->getCode());
        }

        self::assertSame(State::Connected, $this->connection->status()->state);
        self::assertSame(0, $this->connection->queueState($this->queue)->messages);
    }

    public function testPurgeAndDeleteTellHowManyMessagesTheyRemoved(): void
    {
        $this->filled(3);
        self::assertSame(3, $this->connection->purgeQueue($this->queue));
        $this->filled(2);
        self::assertSame(2, $this->connection->deleteQueue($this->queue));

        $this->expectException(BrokerException::class);
        $this->expectExceptionMessage($this->queue);
        $this->connection->declare(new Queue($this->queue, passive: true));
    }

    public function testAFailedConnectionHasAnExceptionClassForItsReason(): void
    {
        $parts = \parse_url($this->url);
        $at = "{$parts['host']}:{$parts['port']}";
        $login = "{$parts['user']}:{$parts['pass']}";
        $expected = [
            "amqp://{$parts['user']}:not-it@{$at}{$parts['path']}" => AuthenticationException::class,
            "amqp://{$login}@{$at}/weft.no.vhost" => VirtualHostNotFoundException::class,
            "amqp://{$login}@{$parts['host']}:1" => ConnectionRefusedException::class,
            "http://{$login}@{$at}" => InvalidDsnError::class,
            "amqp://user:not-it@{$at}?hartbeat=1" => InvalidDsnError::class,
        ];
        foreach ($expected as $dsn => $class) {
            try {
                Connection::connect($dsn);
                self::fail("$class was not thrown");
            } catch (\Weft\Exception $exception) {
                self::assertInstanceOf($class, $exception);
                self::assertStringNotContainsString('not-it', $exception->getMessage());
            }
        }
    }

    public function testTlsTrustsTheGivenAuthorityOnly(): void
    {
        $url = self::address('AMQPS_URL');
        $connection = Connection::connect("$url?cacertfile=" . self::address('TLS_CA_FILE'));
        $connection->declare(new Queue($this->queue));
        $connection->publisher()->publish(new Message('secret'), routingKey: $this->queue);
        self::assertSame(1, $connection->queueState($this->queue)->messages);
        $connection->close();

        $this->expectException(TlsException::class);
        Connection::connect($url);
    }

    public function testManyTasksShareOneConnection(): void
    {
        $this->declared();
        run(function (): void {
            $publisher = $this->connection->publisher(window: 10);
            $tasks = [];
            for ($i = 0; $i < 100; $i++) {
                $tasks[] = async($publisher->publish(...), new Message((string) $i), '', $this->queue);
            }
            foreach ($tasks as $task) {
                $task->await();
            }
        });

        self::assertSame(100, $this->connection->queueState($this->queue)->messages);
    }

    public function testAHeartbeatSurvivesAHandlerThatComputes(): void
    {
        $this->filled(1);
        $connection = Connection::connect("{$this->url}?heartbeat=3");
        $consumer = $connection->consume($this->queue, 1);

        run(function () use ($consumer): void {
            $delivery = $this->one($consumer);
            // The broker gives up on a client that is silent for two to three heartbeats. Without hooks it makes no difference to the
            // event loop whether PHP computes or sleeps, and sleeping leaves the processor to others.
            \sleep(10);
            self::assertTrue($consumer->ack($delivery), 'the connection was lost');
            $consumer->flush();
            self::assertNothingComes($consumer);
        }, hooks: []);

        self::assertSame(State::Connected, $connection->status()->state);
        $consumer->close();
        $connection->close();
        self::assertSame([], self::events($connection));
        self::assertSame(0, $this->connection->queueState($this->queue)->messages);
    }

    public function testAClosedConnectionSaysSo(): void
    {
        $publisher = $this->declared()->publisher();
        $this->connection->close();
        $this->connection->close();

        self::assertSame(State::Closed, $this->connection->status()->state);
        $this->expectException(ConnectionClosedException::class);
        $publisher->publish(new Message('x'), routingKey: $this->queue);
    }

    /** @dataProvider outOfBounds */
    #[DataProvider('outOfBounds')]
    public function testAnOptionOutOfBoundsIsRefusedAtOnce(\Closure $make, string $value): void
    {
        try {
            $make($this->connection);
            self::fail('it was accepted');
        } catch (\ValueError | UsageError $error) {
            self::assertStringContainsString($value, $error->getMessage());
        }
    }

    /** @return iterable<string, array{\Closure, string}> */
    public static function outOfBounds(): iterable
    {
        yield 'priority' => [static fn() => new Message('', priority: 256), '256'];
        yield 'expiration' => [static fn() => new Message('', expiration: -0.5), '-0.5'];
        yield 'expiration that is no number' => [static fn() => new Message('', expiration: \NAN), 'NAN'];
        yield 'timestamp' => [static fn() => new Message('', timestamp: -1), '-1'];
        yield 'queue without a name' => [static fn() => new Queue(''), 'name'];
        yield 'window' => [static fn(Connection $connection) => $connection->publisher(window: 0), 'got 0'];
        yield 'prefetch' => [static fn(Connection $connection) => $connection->consume('q', 65_536), '65536'];
        yield 'routing key' => [
            static fn(Connection $connection) => $connection->publisher()->publish(new Message(''), routingKey: \str_repeat('k', 256)),
            '256 bytes',
        ];
    }

    /** @dataProvider fieldsOutOfBounds */
    #[DataProvider('fieldsOutOfBounds')]
    public function testAFieldThatTheBrokerCannotTakeIsRefusedAndTheConnectionGoesOn(\Closure $send, string $message): void
    {
        $publisher = $this->declared()->publisher();
        try {
            $send($this->connection);
            self::fail('it was sent');
        } catch (UsageError $error) {
            self::assertStringContainsString($message, $error->getMessage());
        }
        timeout(self::DEADLINE, fn() => $publisher->publish(new Message('after it'), routingKey: $this->queue));
        self::assertSame('after it', $this->one($this->connection->consume($this->queue))->body);
    }

    /** @return iterable<string, array{\Closure(Connection): mixed, string}> */
    public static function fieldsOutOfBounds(): iterable
    {
        $publish = static fn(Message $message): \Closure => static fn(Connection $to) => $to->publisher()->publish($message, 'amq.direct');
        $declare = static fn(Exchange|Queue|Binding $object): \Closure => static fn(Connection $to) => $to->declare($object);
        $long = \str_repeat('k', 256);
        $tooLong = '256 bytes, AMQP allows 255';
        yield 'NAN' => [$publish(new Message('', ['x' => \NAN])), '"x" must be a finite number, got NAN'];
        yield 'infinity in a map' => [$publish(new Message('', ['x' => ['y' => \INF]])), '"x.y" must be a finite number, got INF'];
        yield 'infinity in a list' => [$publish(new Message('', ['x' => ['y' => [1.5, -\INF]]])), '"x.y.1" must be a finite number, got -INF'];
        yield 'header' => [$publish(new Message('', [$long => 1, 'after' => 2])), $tooLong];
        yield 'nested header' => [$publish(new Message('', ['x' => [['y' => [$long => 1]]]])), $tooLong];
        foreach (['contentType', 'contentEncoding', 'messageId', 'correlationId', 'replyTo', 'type', 'appId'] as $property) {
            yield $property => [$publish(new Message('', [], ...[$property => $long])), $tooLong];
        }
        yield 'exchange' => [static fn(Connection $to) => $to->publisher()->publish(new Message(''), $long), $tooLong];
        yield 'queue to declare' => [$declare(new Queue($long)), $tooLong];
        yield 'exchange to declare' => [$declare(new Exchange($long)), $tooLong];
        yield 'kind of an exchange' => [$declare(new Exchange('weft.test', $long)), $tooLong];
        yield 'exchange of a binding' => [$declare(Binding::queue($long, 'weft.test')), $tooLong];
        yield 'queue of a binding' => [$declare(Binding::queue('amq.direct', $long)), $tooLong];
        yield 'destination of a binding' => [$declare(Binding::exchange('amq.direct', $long)), $tooLong];
        yield 'key of a binding' => [$declare(Binding::queue('amq.direct', 'weft.test', $long)), $tooLong];
        yield 'queue to consume' => [static fn(Connection $to) => $to->consume($long), $tooLong];
        yield 'queue to count' => [static fn(Connection $to) => $to->queueState($long), $tooLong];
        yield 'queue to purge' => [static fn(Connection $to) => $to->purgeQueue($long), $tooLong];
        yield 'queue to delete' => [static fn(Connection $to) => $to->deleteQueue($long), $tooLong];
        yield 'exchange to delete' => [static fn(Connection $to) => $to->deleteExchange($long), $tooLong];
        foreach (['finite number' => \NAN, $tooLong => [$long => 1]] as $message => $value) {
            $arguments = ['x-weft' => $value];
            yield "queue, {$message}" => [$declare(new Queue('weft.test', arguments: $arguments)), $message];
            yield "exchange, {$message}" => [$declare(new Exchange('weft.test', arguments: $arguments)), $message];
            yield "binding, {$message}" => [$declare(Binding::queue('amq.headers', 'weft.test', arguments: $arguments)), $message];
            yield "consumer, {$message}" => [static fn(Connection $to) => $to->consume('weft.test', arguments: $arguments), $message];
        }
        $large = new Queue('weft.test', arguments: ['x-weft' => \str_repeat('v', 1 << 18)]);
        yield 'arguments larger than a frame' => [$declare($large), 'declare queue "weft.test": the method takes'];
    }

    public function testAHeaderNameOf255BytesArrives(): void
    {
        $headers = [\str_repeat('k', 255) => 1, 'after' => 2];
        $this->declared()->publisher()->publish(new Message('', $headers), routingKey: $this->queue);

        self::assertEquals($headers, $this->one($this->connection->consume($this->queue))->headers);
    }

    public function testADeclarationOnWhichTheBrokerClosesEachConnectionIsGivenUp(): void
    {
        $publisher = $this->declared()->publisher();
        try {
            timeout(self::DEADLINE, fn() => $this->connection->declare(new Exchange("{$this->queue}.exchange", 'x-weft-unknown')));
            self::fail('it was declared');
        } catch (BrokerException $refused) {
            // RabbitMQ 3 closes the connection (503), RabbitMQ 4 only the channel (406).
            self::assertContains($refused->getCode(), [503, 406], $refused->getMessage());
            self::assertStringContainsString(".exchange\": " . ($refused->getCode() === 503 ? 'the broker closed the connection: ' : ''), $refused->getMessage());
        }
        timeout(self::DEADLINE, fn() => $publisher->publish(new Message('after it'), routingKey: $this->queue));
        self::assertSame('after it', $this->one($this->connection->consume($this->queue))->body);
    }

    private static function address(string $variable): string
    {
        $address = \getenv($variable);
        if ($address === false) {
            self::markTestSkipped("$variable is not set");
        }

        return $address;
    }

    private function declared(): Connection
    {
        $this->connection->declare(new Queue($this->queue));

        return $this->connection;
    }

    private function filled(int $messages): void
    {
        $numbered = \array_map(static fn(int $i): Message => new Message((string) $i), \range(0, $messages - 1));
        $this->declared()->publisher()->publishAll($numbered, routingKey: $this->queue);
    }

    private function one(Consumer $consumer): Delivery
    {
        return timeout(self::DEADLINE, static fn(): array => $consumer->next(1))[0];
    }

    /**
     * @param list<Delivery> $deliveries
     * @return list<string>
     */
    private static function bodies(array $deliveries): array
    {
        return \array_map(static fn(Delivery $delivery): string => $delivery->body, $deliveries);
    }

    private static function assertNothingComes(Consumer $consumer): void
    {
        try {
            $came = timeout(self::QUIET, static fn(): array => $consumer->next());
            self::fail('There came ' . \implode(', ', self::bodies($came)));
        } catch (TimeoutException $nothing) {
            self::assertNotNull($nothing);
        }
    }

    /** @return list<string> of a closed connection */
    private static function events(Connection $connection): array
    {
        $events = [];
        while (($event = $connection->nextEvent()) !== null) {
            $events[] = "{$event->kind->value}: {$event->message}";
        }

        return $events;
    }
}
