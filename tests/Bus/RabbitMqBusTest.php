<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Log\NullLogger;
use Weft\Amqp\Connection;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\InvalidDsnError;
use Weft\Amqp\Message;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\Internal\MetricsPoller;
use Weft\Bus\Internal\Setup;
use Weft\Bus\DeadLetter;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\Retry;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\TransportException;
use Weft\Bus\UnroutableMessageException;
use Weft\Sql\Bytes;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolationException;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\PostgresSchema;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\VirtualHost;
use Weft\Tests\Sql\Support\Proxy;
use Weft\Tests\Timing;

use function Weft\async;
use function Weft\delay;
use function Weft\Native\metrics;

/** The bus on the servers it is meant for: RabbitMQ and PostgreSQL. */
final class RabbitMqBusTest extends BusTestCase
{
    use PostgresSchema;

    private VirtualHost $host;
    private string $table = 'customers';

    protected function setUp(): void
    {
        $this->host = VirtualHost::create(self::setting('RABBITMQ_MANAGEMENT_URL'));
    }

    protected function tearDown(): void
    {
        $this->host->delete();
    }

    public function testMetricsHaveTheQueuesTheConnectionsAndTheAgeOfTheOutbox(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->databaseDsn(), new PoolOptions(name: 'orders'));
            try {
                $bus = Bus::connect($this->host->in(self::setting('AMQP_URL')), $database)->handlers(self::storing(static fn() => null));
                $bus->queue(self::QUEUE)->declare();
                $bus->sendAll(self::customers(3));
                $id = \substr_replace(\sprintf('%012x', (int) ((\microtime(true) - 90.0) * 1000)), '-', 8, 0) . '-7000-8000-000000000000';
                $database->execute('INSERT INTO weft_outbox (id, type, must_route, headers, body) VALUES (?, ?, 0, ?, ?)', [$id, 'Type', '{}', new Bytes('{}')]);
                $setup = (fn(): Setup => $this->setup)->call($bus);
                $gauges = async(fn() => (new MetricsPoller($setup->transport, $setup->persistence, new NullLogger()))->follow(self::QUEUE));
                while (!\str_contains(metrics(), 'weft_bus_queue_messages{queue="' . self::QUEUE . '.dead"}')) {
                    delay(0.01);
                }
                $gauges->cancel();
                $text = metrics();
                $bus->close();
            } finally {
                $database->close();
            }

            self::assertStringContainsString('weft_bus_queue_messages{queue="' . self::QUEUE . '"} 3', $text);
            self::assertStringContainsString('weft_bus_connection{purpose="publishing",state="connected"} 1', $text);
            self::assertStringContainsString('weft_bus_connection{purpose="publishing",state="blocked"} 0', $text);
            self::assertStringContainsString('weft_bus_outbox_messages{database="orders"} 1', $text);
            self::assertSame(1, \preg_match('/^weft_bus_outbox_oldest_seconds\{database="orders"\} (\S+)$/m', $text, $age));
            self::assertGreaterThanOrEqual(90.0, (float) $age[1]);
            self::assertLessThan(150.0, (float) $age[1]);
        });
    }

    public function testMetricsHaveTheStateOfAConnectionThatIsBlockedLostRestoredAndClosed(): void
    {
        $this->inRuntime(function (): void {
            $dsn = $this->host->in(self::setting('AMQP_URL'));
            $port = (int) \parse_url($dsn, \PHP_URL_PORT);
            $proxy = new Proxy('127.0.0.1', $port);
            $bus = Bus::connect(\str_replace(":{$port}/", ":{$proxy->port}/", $dsn));
            $bus->queue(self::QUEUE)->declare();
            $setup = (fn(): Setup => $this->setup)->call($bus);
            // States that are 1.
            $states = static function () use ($setup): array {
                $gauges = async(fn() => (new MetricsPoller($setup->transport, null, new NullLogger()))->follow(self::QUEUE));
                delay(0.02);
                $gauges->cancel();
                \preg_match_all('/^weft_bus_connection\{purpose="publishing",state="(\w+)"\} 1$/m', metrics(), $found);

                return $found[1];
            };
            // AMQP 0-9-1, extension of RabbitMQ: class 10, connection, has the methods 60, blocked, and 61, unblocked.
            $method = static fn(int $id, string $arguments): string => \pack('CnNnn', 1, 0, 4 + \strlen($arguments), 10, $id) . "{$arguments}\xCE";
            $changes = [
                ['connected', static fn() => null],
                ['blocked', static fn() => $proxy->say($method(60, "\x0Dlow on memory"))],
                ['connected', static fn() => $proxy->say($method(61, ''))],
                ['connecting', static fn() => $proxy->goAway()],
                ['connected', static fn() => $proxy->comeBack()],
                ['closed', static fn() => $bus->close()],
            ];
            foreach ($changes as [$state, $change]) {
                $change();
                while (($found = $states()) !== [$state]) {
                    self::assertCount(1, $found, "a connection has one state, until it is {$state}");
                }
            }
            self::assertStringContainsString('weft_bus_connection{purpose="publishing",state="connecting"} 0', metrics());
            $proxy->stop();
        });
    }

    public function testAQueueOfABrokerThatIsFarAwayIsEmptiedToItsEnd(): void
    {
        $this->inRuntime(function (): void {
            $dsn = $this->host->in(self::setting('AMQP_URL'));
            $near = Bus::connect($dsn)->handlers(self::storing(static fn() => null));
            $near->queue(self::QUEUE)->declare();
            $near->sendAll(self::customers(1_500));
            $port = (int) \parse_url($dsn, \PHP_URL_PORT);
            $proxy = new Proxy('127.0.0.1', $port);
            $far = Bus::connect(\str_replace(":{$port}/", ":{$proxy->port}/", $dsn));
            $proxy->delay(0.4);

            self::assertSame(1_500, $far->queue(self::QUEUE)->purge());
            $proxy->delay(0.0);
            $far->close();
            $near->close();
            $proxy->stop();
        });
    }

    /** @dataProvider modes */
    #[DataProvider('modes')]
    public function testThousandsOfCommandsAreStoredAndTheirEventsHeardOnce(DeliveryGuarantee $guarantee, bool $persistent): void
    {
        $this->inRuntime(function () use ($guarantee, $persistent): void {
            $database = $this->database();
            $heard = [];
            $bus = Bus::connect(RabbitMq::connect($this->host->in(self::setting('AMQP_URL')), persistent: $persistent), $database, new BusOptions(guarantee: $guarantee))
                ->handlers($this->inserting(), new class ($heard) {
                    public function __construct(private array &$heard) {}

                    #[EventListener]
                    public function stored(CustomerStored $event): void
                    {
                        $this->heard[] = (int) $event->id;
                    }
                });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3_000));

            self::assertSame(6_000, $bus->consume(self::QUEUE, concurrency: 50, options: new ConsumeOptions(stopWhenEmpty: true)));
            \sort($heard);
            self::assertSame(\range(1, 3_000), $heard);
            self::assertSame(3_000, $database->execute("SELECT count(*) FROM {$this->table}")->value());
            self::assertSame([0, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $bus->close();
            $database->close();
        }, deadline: 240.0);
    }

    public static function modes(): iterable
    {
        yield 'confirmed, after the commit' => [DeliveryGuarantee::AtLeastOnce, true];
        yield 'at once, transient' => [DeliveryGuarantee::BestEffort, false];
    }

    public function testFailedMessagesAreDeadLetteredWithTheirBytesAndTheError(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $bus = Bus::connect($this->host->in(self::setting('AMQP_URL')), $database)->handlers($this->inserting());
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll([self::customer(1), self::customer(1), self::customer(2)]);

            self::assertSame(3, $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true)));
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame('{"id":"1","name":"name_1","email":"name@example.org"}', $letter->body);
            self::assertSame([UniqueViolationException::class, StoreCustomer::class, 1], [$letter->errorClass(), $letter->type, $letter->attempts()]);
            self::assertStringNotContainsString('name_1', $letter->errorMessage());
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->count(), 'looking leaves it there');
            self::assertSame(2, $database->execute("SELECT count(*) FROM {$this->table}")->value());
            $bus->close();
            $database->close();
        });
    }

    public function testABusThatIsIdleIsStoppedByAnotherTask(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect($this->host->in(self::setting('AMQP_URL')))->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            $stopping = async(static function () use ($bus): void {
                while ($bus->admin()->stats()->commands === 0) {
                    delay(0.01);
                }
                delay(0.3);
                $bus->stop();
            });

            self::assertSame(1, $bus->consume(self::QUEUE));
            $stopping->await();
            self::assertSame(0, $bus->queue(self::QUEUE)->depth());
            $bus->close();
        });
    }

    public function testAPrefetchOfMoreThanAConsumerCanHaveIsSharedByTwo(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $stopping = false;
            $bus = Bus::connect($this->host->in(self::setting('AMQP_URL')));
            $bus->handlers(self::storing(static function (StoreCustomer $command) use (&$seen, &$stopping, $bus): void {
                $seen[$command->id] = ($seen[$command->id] ?? 0) + 1;
                if (\count($seen) === 200 && !$stopping) {
                    $stopping = true;
                    $bus->stop();
                }
                (int) $command->id % 50 === 0 && throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(500));
            $bus->consume(self::QUEUE, concurrency: 10, options: new ConsumeOptions(prefetch: 131_070));
            // A quorum queue takes back what was fetched a moment after it was told to.
            while (\count($seen) + $bus->queue(self::QUEUE)->depth() < 500) {
                delay(0.02);
            }
            self::assertSame(500, \count($seen) + $bus->queue(self::QUEUE)->depth());
            $bus->consume(self::QUEUE, concurrency: 10, options: new ConsumeOptions(prefetch: 70_000, stopWhenEmpty: true));

            self::assertSame([500, 1], [\count($seen), \max($seen)]);
            self::assertSame([490, 10, 10, 0], [$bus->admin()->stats()->commands, $bus->admin()->stats()->deadLettered, $bus->queue(self::QUEUE)->deadLetters()->count(), $bus->queue(self::QUEUE)->depth()]);
            $bus->close();
        });
    }

    public function testOneStreamIsNotReadByTwo(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect(RabbitMq::connect($this->host->in(self::setting('AMQP_URL')), queue: RabbitMqQueue::stream()));
            try {
                $this->expectException(\ValueError::class);
                $this->expectExceptionMessage('The prefetch of the stream "customers" must be at most 65535, got 65536');
                $bus->consume(self::QUEUE, options: new ConsumeOptions(prefetch: 65_536));
            } finally {
                $bus->close();
            }
        });
    }

    public function testAnEventCanBePublishedOnABrokerThatIsNew(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect($this->host->in(self::setting('AMQP_URL')));
            $bus->publish(new CustomerStored('1'));
            $bus->publishAll([new CustomerStored('2'), new CustomerStored('3')]);
            self::assertSame(3, $bus->admin()->stats()->sent);

            $this->expectException(UnroutableMessageException::class);
            $bus->send(self::customer(1));
        });
    }

    public function testHeadersThatLeaveNoRoomForTheErrorAreLeftOutOfTheDeadLetter(): void
    {
        $this->inRuntime(function (): void {
            $broker = RabbitMq::connect($this->host->in(self::setting('AMQP_URL')));
            $runs = 0;
            $bus = Bus::connect($broker)->handlers(self::storing(static function () use (&$runs): void {
                $runs++;
                throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(StoreCustomer::class, '{"id":"1","name":"a","email":"b"}', ['message-id' => '7', 'theirs' => \str_repeat('x', 130_900)])]);

            self::drain($bus);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([1, '7', 'no', '{"id":"1","name":"a","email":"b"}'], [$runs, $letter->messageId(), $letter->errorMessage(), $letter->body]);
            self::assertArrayNotHasKey('theirs', $letter->headers);
            self::assertGreaterThanOrEqual(1, (int) $letter->headers[Header::LEFT_OUT]);
            $bus->close();
        });
    }

    public function testAForeignMessageWhoseIdIsNotUtf8IsHandledOrDeadLetteredAndOthersAreNotAffected(): void
    {
        $this->inRuntime(function (): void {
            $url = $this->host->in(self::setting('AMQP_URL'));
            $handled = [];
            $bus = Bus::connect($url)->handlers(
                self::storing(static function (StoreCustomer $command, Context $context) use (&$handled): void {
                    $handled[$command->id] = $context->messageId();
                    $context->publish(new CustomerStored($command->id));
                    $command->id === 'refused' && throw new \DomainException('no');
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $connection = Connection::connect($url);
            $publisher = $connection->publisher();
            foreach (['stored', 'refused'] as $id) {
                $headers = ['message-id' => "caf\xe9", 'content-type' => "application/\xff", 'weft-kind' => 'command'];
                $publisher->publish(new Message("{\"id\":\"{$id}\",\"name\":\"a\",\"email\":\"b\"}", $headers, type: StoreCustomer::class), routingKey: self::QUEUE);
            }
            $bus->send(self::customer(3));

            self::drain($bus);
            self::assertEqualsCanonicalizing(['stored', 'refused', '3'], \array_map('strval', \array_keys($handled)));
            self::assertSame(['caf\\351', 'caf\\351'], [$handled['stored'], $handled['refused']]);
            self::assertSame(['no'], \array_map(static fn(DeadLetter $letter): ?string => $letter->errorMessage(), $bus->queue(self::QUEUE)->deadLetters()->peek()));
            $connection->close();
            $bus->close();
        });
    }

    public function testADeadLetterKeepsThePropertiesThatAForeignSenderHasSet(): void
    {
        $this->inRuntime(function (): void {
            $url = $this->host->in(self::setting('AMQP_URL'));
            $bus = Bus::connect($url)->handlers(self::storing(static fn() => throw new \DomainException('no')));
            $bus->queue(self::QUEUE)->declare();
            $sent = new Message(
                '{"id":"1","name":"a","email":"b"}',
                ['int' => 7, 'list' => [1, 'two'], 'text' => 'as it was', 'weft-kind' => 'command'],
                contentType: 'application/json',
                contentEncoding: 'identity',
                messageId: 'm1',
                correlationId: 'c1',
                replyTo: 'answers',
                type: StoreCustomer::class,
                appId: 'shop',
                priority: 7,
                expiration: 600.0,
                timestamp: 1_700_000_000
            );
            $connection = Connection::connect($url);
            $connection->publisher()->publish($sent, routingKey: self::QUEUE);

            self::drain($bus);
            $letter = $connection->consume('customers.dead')->next()[0];
            $expected = \get_object_vars($sent);
            $actual = \get_object_vars($letter->message);
            self::assertSame($sent->headers, \array_intersect_key($letter->headers, $sent->headers));
            self::assertSame(['600000', 'no'], [$letter->headers[Header::EXPIRATION], $letter->headers[Header::ERROR_MESSAGE]]);
            self::assertNull($letter->message->expiration, 'a dead letter does not vanish');
            unset($expected['headers'], $expected['expiration'], $actual['headers'], $actual['expiration']);
            self::assertSame($expected, $actual);
            $connection->close();
            $bus->close();
        });
    }

    public function testAMessageWithCopiesIsDeadLetteredDelayedAndRetriedWithoutFurtherCopies(): void
    {
        $this->inRuntime(function (): void {
            $url = $this->host->in(self::setting('AMQP_URL'));
            $database = Database::connect('sqlite::memory:');
            $connection = Connection::connect($url);
            foreach (['dead letters' => [null, new Retry()], 'retries in the broker' => [null, new Retry(delayed: 1, delay: 0.05)], 'retries in the database' => [$database, new Retry(delayed: 1, delay: 0.05)]] as $what => [$store, $retry]) {
                $calls = 0;
                $bus = Bus::connect($url, $store, new BusOptions(retry: $retry))->handlers(self::storing(static function () use (&$calls): never {
                    $calls++;
                    throw new \RuntimeException('no');
                }));
                $bus->queue(self::QUEUE)->declare();
                $bus->queue('side')->declare();
                $headers = ['CC' => ['side'], 'tenant' => 't', 'weft-kind' => 'command'];
                $connection->publisher()->publish(new Message('{"id":"1","name":"a","email":"b"}', $headers, messageId: $what, type: StoreCustomer::class), routingKey: self::QUEUE);
                self::assertSame(1, $bus->queue('side')->purge(), 'the copy that the sender has asked for');

                $letters = $bus->queue(self::QUEUE)->deadLetters();
                $consuming = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
                for ($deadline = \microtime(true) + Timing::DEADLINE; $letters->count() === 0 && \microtime(true) < $deadline;) {
                    delay(0.02);
                }
                $bus->stop();
                $consuming->await();
                self::assertSame([1 + $retry->delayed, 0], [$calls, $bus->queue('side')->depth()], $what);
                self::assertSame('t', $letters->peek()[0]->headers['tenant'] ?? null, $what);
                self::assertSame(1, $letters->retry(), $what);
                self::assertSame([1, 0], [$bus->queue(self::QUEUE)->depth(), $bus->queue('side')->depth()], $what);
                $bus->queue(self::QUEUE)->delete(withMessages: true);
                $bus->queue('side')->delete(withMessages: true);
                $bus->close();
            }
            $connection->close();
        });
    }

    /** @dataProvider unreachable */
    #[DataProvider('unreachable')]
    public function testABrokerThatCannotBeUsedIsNamedWithoutThePassword(string $replace, string $with, string $message): void
    {
        $dsn = \preg_replace($replace, $with, self::setting('AMQP_URL'));
        try {
            Bus::connect($dsn);
            self::fail('connected');
        } catch (TransportException | InvalidDsnError $failed) {
            self::assertMatchesRegularExpression($message, $failed->getMessage());
            self::assertStringNotContainsString('secret', $failed->getMessage());
        }
    }

    public static function unreachable(): iterable
    {
        yield 'server down' => ['~//.*@([^:]+):\d+~', '//weft:secret@$1:1', '/^RabbitMQ: cannot connect to \S+:1: .*refused/is'];
        yield 'wrong password' => ['~//(\w+):\w+@~', '//$1:secret@', '/refused|authentication/i'];
        yield 'no such virtual host' => ['~/[^/]*$~', '/nowhere', '/nowhere/'];
        yield 'bad port' => ['~//.*$~', '//weft:secret@localhost:99999', '/port/i'];
    }

    private function database(): Database
    {
        $database = Database::connect($this->databaseDsn(), new PoolOptions(size: 10));
        $database->execute("CREATE TABLE {$this->table} (id varchar PRIMARY KEY, name varchar NOT NULL)");

        return $database;
    }

    private function inserting(): object
    {
        return new class ($this->table) {
            public function __construct(private readonly string $table) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $transaction->execute("INSERT INTO {$this->table} (id, name) VALUES (?, ?)", [$command->id, $command->name]);
                $context->publish(new CustomerStored($command->id));
            }
        };
    }
}
