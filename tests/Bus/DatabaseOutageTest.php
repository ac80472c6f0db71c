<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\RateLimit;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\delay;

/** A database that goes away while messages are handled: no retry is counted, no message is dead-lettered, no effect happens twice. */
class DatabaseOutageTest extends BusTestCase
{
    use Servers;

    private const MESSAGES = 6;

    private Proxy $proxy;

    /** @before */
    #[Before]
    protected function stepBetween(): void
    {
        $server = \parse_url($this->databaseDsn());
        $this->proxy = new Proxy($server['host'], $server['port']);
    }

    /** @after */
    #[After]
    protected function stepAside(): void
    {
        $this->proxy->stop();
    }

    /** @return iterable<string, array{\Closure(self, string): Transport}> */
    public static function brokers(): iterable
    {
        yield 'RabbitMQ' => [static fn(self $test): Transport => RabbitMq::connect($test->brokerDsn())];
        yield 'RabbitMQ, quorum queue' => [static fn(self $test): Transport => RabbitMq::connect($test->brokerDsn(), queue: RabbitMqQueue::quorum())];
        yield 'PostgreSQL' => [static fn(self $test, string $dsn): Transport => Postgres::connect($dsn)];
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testMessagesThatAWorkerRequeuesBecauseTheInboxIsAwayAreHandledOnceByTheNext(\Closure $connect): void
    {
        $this->inRuntime(function () use ($connect): void {
            $direct = $this->database();
            [$gate, $attempts] = [new \ArrayObject(['open' => true, 'waiting' => 0]), new \ArrayObject()];
            $bus = $this->bus($connect, $this->throughProxy(), $gate, $attempts);
            $bus->queue(self::QUEUE)->declare();
            $sender = $connect($this, $this->databaseDsn());
            $sender->publish([self::message(1)]);
            self::until(static fn(): bool => self::effects($direct) === 1, $bus);

            $gate['open'] = false;
            $gate['waiting'] = 0;
            // The first one comes a second time.
            $sender->publish(\array_map(self::message(...), \range(1, self::MESSAGES)));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 10));
            while ($gate['waiting'] < self::MESSAGES) {
                delay(0.01);
            }
            $this->proxy->goAway();
            $gate['open'] = true;
            delay(0.3);
            $bus->stop();
            $consuming->await();
            self::assertSame([0, 0, 0], [$bus->admin()->stats()->failed, $bus->admin()->stats()->deadLettered, $bus->admin()->stats()->retried]);
            self::assertSame(1, self::effects($direct));
            $bus->close();

            $this->proxy->comeBack();
            $next = $this->bus($connect, $this->throughProxy(), $gate, $attempts);
            self::until(static fn(): bool => self::effects($direct) === self::MESSAGES && $next->admin()->stats()->duplicates === 1, $next);

            self::assertSame([0], \array_values(\array_unique($attempts->getArrayCopy())));
            self::assertSame(self::MESSAGES, $direct->execute('SELECT count(DISTINCT id) FROM effects')->value());
            self::assertSame([0, 0, 0, 0], [$next->admin()->stats()->failed, $next->queue(self::QUEUE)->deadLetters()->count(), $next->queue(self::QUEUE)->depth(), self::noted($direct)]);
            \array_map(static fn(object $open) => $open->close(), [$next, $sender, $direct]);
        });
    }

    /** What was delivered before is looked up before anything else. With PostgreSQL as the broker nothing is delivered meanwhile. */
    public function testARedeliveredMessageWaitsUntilTheInboxCanBeAsked(): void
    {
        $this->inRuntime(function (): void {
            $direct = $this->database();
            [$gate, $attempts] = [new \ArrayObject(['open' => true, 'waiting' => 0]), new \ArrayObject()];
            $connect = static fn(self $test): Transport => RabbitMq::connect($test->brokerDsn());
            $bus = $this->bus($connect, $this->throughProxy(), $gate, $attempts);
            $bus->queue(self::QUEUE)->declare();
            $sender = $connect($this);
            $sender->publish([self::message(1)]);
            self::until(static fn(): bool => self::effects($direct) === 1, $bus);
            $sender->publish(\array_map(self::message(...), \range(1, self::MESSAGES)));
            $holder = $sender->consume(self::QUEUE, self::MESSAGES);
            for ($held = 0; $held < self::MESSAGES;) {
                $held += \count($holder->next(10));
            }

            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 10));
            // Only the bus can take it: it has begun to consume.
            $sender->publish([self::message(100)]);
            // Its effect can be seen before the bus has the answer to the COMMIT; without that it would begin the message again.
            while (self::effects($direct) < 2 || $bus->admin()->stats()->succeeded() < 2) {
                delay(0.02);
            }
            $this->proxy->goAway();
            $holder->close();
            delay(0.5);
            self::assertSame([2, 0, 0], [\count($attempts), $bus->admin()->stats()->failed, $bus->admin()->stats()->deadLettered], 'no handler has begun');
            $this->proxy->comeBack();
            while (self::effects($direct) < self::MESSAGES + 1 || $bus->admin()->stats()->duplicates < 1) {
                delay(0.02);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame(\array_fill(0, self::MESSAGES + 1, 0), $attempts->getArrayCopy(), 'the one that was handled has not begun again');
            self::assertSame([0, 0, 0, 0], [$bus->admin()->stats()->failed, $bus->queue(self::QUEUE)->deadLetters()->count(), $bus->queue(self::QUEUE)->depth(), self::noted($direct)]);
            \array_map(static fn(object $open) => $open->close(), [$bus, $sender, $direct]);
        });
    }

    public function testASharedRateThatCannotBeAskedForDeadLettersNothing(): void
    {
        $this->inRuntime(function (): void {
            $direct = $this->database();
            $calls = new \ArrayObject();
            $bus = Bus::connect($this->brokerDsn(), Database::connect($this->throughProxy(), new PoolOptions(size: 12)))->handlers(new class ($calls) {
                public function __construct(private readonly \ArrayObject $calls) {}

                #[CommandHandler]
                public function forget(ForgetCustomer $command): void {}

                #[CommandHandler]
                #[RateLimit(perSecond: 1000.0, shared: true)]
                public function store(StoreCustomer $command): void
                {
                    $this->calls[] = $command->id;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 4));
            $bus->send(new ForgetCustomer('1'));
            while ($bus->admin()->stats()->commands === 0) {
                delay(0.01);
            }
            $this->proxy->goAway();
            $bus->sendAll(self::customers(self::MESSAGES));
            delay(0.7);
            self::assertSame([0, 0, 0], [\count($calls), $bus->admin()->stats()->failed, $bus->admin()->stats()->deadLettered]);
            $this->proxy->comeBack();
            while (\count($calls) < self::MESSAGES) {
                delay(0.02);
            }
            $bus->stop();
            $consuming->await();

            self::assertSame([0, 0], [$bus->admin()->stats()->failed, $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $bus->close();
            $direct->close();
        });
    }

    /**
     * @param \ArrayObject<string, mixed> $gate     handlers wait until it is `open`; `waiting` counts them
     * @param \ArrayObject<int, int>      $attempts how many had failed before, of each call
     */
    private function bus(\Closure $connect, string $dsn, \ArrayObject $gate, \ArrayObject $attempts): Bus
    {
        $database = Database::connect($dsn, new PoolOptions(size: 12));

        return Bus::connect($connect($this, $dsn), $database)->handlers(new class ($gate, $attempts) {
            public function __construct(private readonly \ArrayObject $gate, private readonly \ArrayObject $attempts) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $this->attempts[] = $context->failedAttempts();
                for ($this->gate['waiting']++; !$this->gate['open'];) {
                    delay(0.01);
                }
                $transaction->execute('INSERT INTO effects VALUES (?, ?)', [$command->id, 'stored']);
            }
        });
    }

    private static function message(int $number): Outgoing
    {
        return new Outgoing(StoreCustomer::class, \json_encode(self::customer($number), \JSON_THROW_ON_ERROR), [
            Header::MESSAGE_ID => "customer-{$number}",
            Header::KIND => 'command',
        ], mustRoute: true);
    }

    /** Consumes until that is so. */
    private static function until(\Closure $done, Bus $bus): void
    {
        $consuming = async(static fn(): int => $bus->consume(self::QUEUE, concurrency: 10));
        while (!$done()) {
            delay(0.02);
        }
        $bus->stop();
        $consuming->await();
    }

    private function throughProxy(): string
    {
        $port = \parse_url($this->databaseDsn(), \PHP_URL_PORT);

        return \str_replace(":{$port}/", ":{$this->proxy->port}/", $this->databaseDsn());
    }

    private static function effects(Database $database): int
    {
        return $database->execute('SELECT count(*) FROM effects')->value();
    }

    /** Attempts that count towards a crash. */
    private static function noted(Database $database): int
    {
        return $database->execute('SELECT count(*) FROM weft_redeliveries')->value();
    }
}
