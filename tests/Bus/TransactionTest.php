<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\Retry;
use Weft\Bus\BusOptions;
use Weft\Bus\Context;
use Weft\Bus\CommandHandler;
use Weft\Bus\SendOptions;
use Weft\Bus\TransactionFinishedException;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Sqlite;
use Weft\Log\StreamLogger;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolationException;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\async;
use function Weft\delay;

/** A handler with a Transaction: with a broker elsewhere, and with the broker in the same database. */
final class TransactionTest extends BusTestCase
{
    use TemporaryDatabase;

    public static function brokers(): iterable
    {
        yield 'broker elsewhere' => [static fn(): Transport => new Memory()];
        yield 'broker in the same database' => [static fn(Database $database): Transport => Sqlite::on($database)];
        yield 'broker in another file' => [static fn(Database $database, string $directory): Transport => Sqlite::connect("sqlite://{$directory}/broker.db", $database)];
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testRowsAndEventsOfAHandlerExistAfterItReturns(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $heard = [];
            $bus->handlers($this->inserting(), self::listening(function (CustomerStored $event) use (&$heard): void {
                $heard[] = (int) $event->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(50));

            self::assertSame(100, self::drain($bus));
            \sort($heard);
            self::assertSame(\range(1, 50), $heard);
            self::assertSame(50, self::stored($database));
            self::assertSame([0, 0, 100], [$bus->queue(self::QUEUE)->depth(), $bus->queue(self::QUEUE)->deadLetters()->count(), $bus->admin()->stats()->sent]);
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testAHandlerThatThrowsHasStoredAndPublishedNothing(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $heard = 0;
            $bus->handlers($this->inserting(static fn() => throw new \DomainException('no')), self::listening(function () use (&$heard): void {
                $heard++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));

            self::assertSame(3, self::drain($bus));
            self::assertSame([0, 0], [$heard, self::stored($database)]);
            self::assertSame(3, $bus->queue(self::QUEUE)->deadLetters()->count());
        });
    }

    public function testTheLogNamesTheLineOfADeferredStatementThatFailed(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $database->execute('CREATE TABLE customers (id TEXT NOT NULL)');
            $stream = \fopen('php://memory', 'w+');
            $bus = Bus::connect(new Memory(), $database, new BusOptions(logger: new StreamLogger($stream)))->handlers(new class {
                #[CommandHandler]
                #[Retry(immediate: 0, delayed: 0)]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $transaction->execute('INSERT INTO customers VALUES (NULL)');
                    $transaction->execute('INSERT INTO customers VALUES (?)', [$command->id]);
                }
            });
            $place = __FILE__ . ':' . (__LINE__ - 4);
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);
            $bus->close();
            $database->close();

            $lines = \explode("\n", (string) \stream_get_contents($stream, offset: 0));
            $failed = \array_values(\preg_grep('/ failed in /', $lines) ?: []);
            self::assertCount(1, $failed, \implode("\n", $lines));
            self::assertStringContainsString('::store', $failed[0]);
            self::assertStringContainsString("[given at {$place}]", $failed[0]);
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testMessagesOfASavepointThatIsRolledBackAreNotSent(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus): void {
            $heard = [];
            $bus->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
                {
                    $context->publish(new CustomerStored('before'));
                    foreach (['undone' => true, 'kept' => false] as $id => $fails) {
                        try {
                            $transaction->transaction(static function (Transaction $transaction) use ($context, $id, $fails): void {
                                $context->publish(new CustomerStored($id), new SendOptions(delay: $fails ? 0.01 : 0.05));
                                $transaction->transaction(static fn(): string => $context->publish(new CustomerStored("{$id}, inside")));
                                $fails && throw new \DomainException('no');
                            });
                        } catch (\DomainException) {
                        }
                    }
                    $context->publish(new CustomerStored('after'));
                }
            }, self::listening(static function (CustomerStored $event) use (&$heard, $bus): void {
                $heard[] = $event->id;
                $event->id === 'kept' && $bus->stop();
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            $bus->consume(self::QUEUE);
            self::drain($bus);

            self::assertEqualsCanonicalizing(['before', 'kept', 'kept, inside', 'after'], $heard);
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testAStatementThatFailsWhenItIsCommittedDeadLettersTheMessageWithItsError(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $heard = 0;
            $bus->handlers($this->inserting(), self::listening(function () use (&$heard): void {
                $heard++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertSame([1, 1], [$heard, self::stored($database)]);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(UniqueViolationException::class, $letter->errorClass());
            self::assertStringContainsString('INSERT INTO customers', $letter->errorMessage());
            self::assertStringNotContainsString('name_7', $letter->errorMessage());
            self::assertStringEndsWith('::store', $letter->failedHandlers()[0]);
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testAMissingTableDeadLettersTheMessagesAndTheWorkerGoesOn(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $database->execute('ALTER TABLE customers RENAME TO elsewhere');
            $bus->handlers($this->inserting());
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));

            self::assertSame(3, self::drain($bus));
            self::assertStringContainsString('no such table: customers', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());
            self::assertSame(3, $bus->queue(self::QUEUE)->deadLetters()->count());
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testAHandlerCannotEndItsTransaction(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $heard = 0;
            /** @var array<string, \Closure(Transaction, Context): mixed> $ends */
            $ends = [
                'rollback()' => static fn(Transaction $transaction) => $transaction->rollback(),
                'commit()' => static fn(Transaction $transaction) => $transaction->commit(),
                'commit(), which it catches' => static function (Transaction $transaction): void {
                    try {
                        $transaction->commit();
                    } catch (\Throwable $thrown) {
                        throw new \RuntimeException('after commit', previous: $thrown);
                    }
                },
                'commit() and publish()' => static function (Transaction $transaction, Context $context): void {
                    $transaction->commit();
                    $context->publish(new CustomerStored('after commit'));
                },
            ];
            $bus->handlers($this->inserting(static fn(Transaction $transaction, Context $context, string $id) => $ends[$id]($transaction, $context)), self::listening(function () use (&$heard): void {
                $heard++;
            }));
            $bus->queue(self::QUEUE)->declare();
            foreach ($ends as $id => $_) {
                $bus->send(self::customer($id));
            }
            self::drain($bus);

            self::assertSame([0, 0], [$heard, self::stored($database)]);
            $errors = \array_map(static fn($letter): array => [$letter->errorClass(), $letter->errorMessage()], $bus->queue(self::QUEUE)->deadLetters()->peek(10));
            \usort($errors, static fn(array $one, array $other): int => $one <=> $other);
            self::assertSame([\RuntimeException::class, TransactionFinishedException::class, TransactionFinishedException::class, TransactionFinishedException::class], \array_column($errors, 0));
            self::assertStringEndsWith('::store() called commit() on its Transaction; the bus ends the transactions of handlers', $errors[1][1]);
            self::assertStringEndsWith('::store() called rollback() on its Transaction; the bus ends the transactions of handlers', $errors[3][1]);
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testATaskThatFailsAfterItsHandlerHasReturnedFailsTheMessage(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $heard = 0;
            $bus->handlers($this->inserting(static function (Transaction $transaction, Context $context, string $id): void {
                async(static function () use ($id): void {
                    delay(0.01);
                    $id === '2' && throw new \DomainException('mail server is down');
                });
            }), self::listening(function () use (&$heard): void {
                $heard++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(3));
            self::drain($bus);

            self::assertSame([2, 2, 1], [$heard, self::stored($database), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([\DomainException::class, 'mail server is down'], [$letter->errorClass(), $letter->errorMessage()]);
            self::assertStringEndsWith('::store', $letter->failedHandlers()[0]);
        });
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testATaskOfAHandlerPublishesInTheTransactionOfTheHandler(\Closure $broker): void
    {
        $this->with($broker, function (Bus $bus, Database $database): void {
            $heard = [];
            $bus->handlers($this->inserting(static function (Transaction $transaction, Context $context): void {
                async(static function () use ($transaction, $context): void {
                    delay(0.01);
                    $transaction->execute('UPDATE customers SET name = ?', ['by a task']);
                    $context->publish(new CustomerStored('of a task'));
                });
            }), self::listening(function (CustomerStored $event) use (&$heard): void {
                $heard[] = $event->id;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertEqualsCanonicalizing(['7', 'of a task'], $heard);
            self::assertSame(1, $database->execute("SELECT count(*) FROM customers WHERE name = 'by a task'")->value());
        });
    }

    public function testMessagesLeaveAfterTheCommitAndTheAcknowledgementAfterThem(): void
    {
        $spy = new SpyTransport(new Memory());
        $this->with(static fn(): Transport => $spy, function (Bus $bus, Database $database) use ($spy): void {
            $other = Database::connect($this->dsn());
            $order = [];
            $bus->handlers($this->inserting(), self::listening(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            $spy->before = static function (string $what, array $messages) use (&$order, $other): void {
                $order[] = [$what, \count($messages), self::stored($other)];
            };
            self::drain($bus);
            $other->close();

            self::assertSame([['publish', 1, 1], ['ack', 0, 1], ['ack', 0, 1]], $order, 'the row is visible to others before anything is published');
        });
    }

    public function testACommandWithoutAQueueRollsBackAHandlerWhoseBrokerIsInTheSameDatabase(): void
    {
        $this->with(static fn(Database $database): Transport => Sqlite::on($database), function (Bus $bus, Database $database): void {
            $bus->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
                {
                    $transaction->execute('INSERT INTO customers (id) VALUES (?)', [$command->id]);
                    $context->send(new Fixtures\ForgetCustomer($command->id));
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertSame([0, 1], [self::stored($database), $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testAHandlerMayAskForResultsInItsTransaction(): void
    {
        $this->with(static fn(Database $database): Transport => Sqlite::on($database), function (Bus $bus, Database $database): void {
            $bus->handlers($this->inserting(static function (Transaction $transaction): void {
                $count = $transaction->execute('SELECT count(*) FROM customers')->value();
                delay(0.001);
                $transaction->execute('UPDATE customers SET name = ? WHERE name IS NULL', ["customer {$count}"]);
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(20));
            self::drain($bus);

            self::assertSame(20, $database->execute("SELECT count(DISTINCT name) FROM customers WHERE name LIKE 'customer %'")->value());
        });
    }

    public function testABrokerDsnOfTheSameFileSharesTheTransaction(): void
    {
        $this->inRuntime(function (): void {
            $database = self::databaseAt($this->dsn());
            // Another way to write the same path.
            $bus = Bus::connect("sqlite://{$this->directory}/../" . \basename($this->directory) . '/customers.db', $database, new BusOptions(retry: new Retry()))->handlers($this->inserting());
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            // Only what the handler's own transaction deletes can see that its row is there.
            $database->execute('CREATE TABLE seen (stored INTEGER)');
            $database->execute('CREATE TRIGGER watch AFTER DELETE ON weft_messages BEGIN INSERT INTO seen SELECT count(*) FROM customers; END');
            $database->execute('CREATE TRIGGER refuse AFTER INSERT ON seen WHEN new.stored = 1 BEGIN SELECT raise(ABORT, \'ack was refused\'); END');
            self::drain($bus);

            self::assertSame(0, self::stored($database), 'the refused acknowledgement has taken the insert along');
            self::assertStringContainsString('ack was refused', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());
            $bus->close();
            $database->close();
        });
    }

    public function testClosingTheBusWhileAHandlerRunsDoesNotRepeatItsEffect(): void
    {
        $this->inRuntime(function (): void {
            $database = self::databaseAt($this->dsn());
            // Without a key: one would hide a repeated effect.
            $database->execute('CREATE TABLE effects (customer TEXT)');
            $slow = new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    delay(0.3);
                    $transaction->execute('INSERT INTO effects (customer) VALUES (?)', [$command->id]);
                }
            };
            [$first, $second] = [Bus::connect($this->dsn(), $database)->handlers($slow), Bus::connect($this->dsn(), $database)->handlers($slow)];
            $first->queue(self::QUEUE)->declare();
            $first->send(self::customer(1));
            $consuming = async(static fn(): int => $first->consume(self::QUEUE));
            delay(0.1);
            $first->close();
            self::drain($second);
            $consuming->await();

            self::assertSame([1, 0], [$database->execute('SELECT count(*) FROM effects')->value(), $second->queue(self::QUEUE)->deadLetters()->count()]);
            $second->close();
            $database->close();
        });
    }

    public function testAConsumerThatIsTakenForDeadCannotRepeatAnEffect(): void
    {
        $this->inRuntime(function (): void {
            $database = self::databaseAt($this->dsn());
            $database->execute('CREATE TABLE effects (customer TEXT)');
            $slow = new class {
                public int $begun = 0;

                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $this->begun++;
                    // The first one goes on when the second has the message, too.
                    do {
                        delay(0.01);
                    } while ($this->begun < 2);
                    $transaction->execute('INSERT INTO effects (customer) VALUES (?)', [$command->id]);
                }
            };
            [$first, $second] = [Bus::connect($this->dsn(), $database)->handlers($slow), Bus::connect($this->dsn(), $database)->handlers($slow)];
            $first->queue(self::QUEUE)->declare();
            $first->send(self::customer(1));
            $consuming = async(static fn(): int => $first->consume(self::QUEUE));
            while ($slow->begun < 1) {
                delay(0.01);
            }
            // Its lock file is all that says it lives.
            \array_map('unlink', \glob("{$this->directory}/customers.db-weft/consumer-*"));
            self::drain($second);
            $first->stop();
            $consuming->await();

            self::assertSame([1, 0], [$database->execute('SELECT count(*) FROM effects')->value(), $second->queue(self::QUEUE)->deadLetters()->count()]);
            self::assertSame([1, 1], [$first->admin()->stats()->commands + $second->admin()->stats()->commands, $first->admin()->stats()->failed + $second->admin()->stats()->failed]);
            $first->close();
            $second->close();
            $database->close();
        });
    }

    private function with(\Closure $broker, \Closure $test): void
    {
        $this->inRuntime(function () use ($broker, $test): void {
            $database = self::databaseAt($this->dsn());
            $bus = Bus::connect($broker($database, $this->directory), $database, new BusOptions(retry: new Retry()));
            try {
                $test($bus, $database);
            } finally {
                $bus->close();
                $database->close();
            }
        });
    }

    private static function databaseAt(string $dsn): Database
    {
        $database = Database::connect($dsn);
        $database->execute('CREATE TABLE customers (id TEXT PRIMARY KEY, name TEXT)');

        return $database;
    }

    private function inserting(?\Closure $then = null): object
    {
        return new class ($then ?? static fn() => null) {
            public function __construct(private readonly \Closure $then) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $transaction->execute('INSERT INTO customers (id) VALUES (?)', [$command->id]);
                $context->publish(new CustomerStored($command->id));
                ($this->then)($transaction, $context, $command->id);
            }
        };
    }

    private static function stored(Database $database): int
    {
        return $database->execute('SELECT count(*) FROM customers')->value();
    }
}
