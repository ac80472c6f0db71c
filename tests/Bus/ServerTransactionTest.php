<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\TransactionFinishedException;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Sql\Support\EmptyDatabase;

/** A handler with a Transaction of a database server. */
final class ServerTransactionTest extends BusTestCase
{
    /** @return iterable<string, array{string}> */
    public static function servers(): iterable
    {
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testRowsAndEventsOfAHandlerExistAfterItReturnsAndNotAfterItThrows(string $server): void
    {
        $this->inRuntime(static function () use ($server): void {
            $empty = new EmptyDatabase($server);
            $database = Database::connect($empty->dsn());
            $database->execute('CREATE TABLE customers (id VARCHAR(40) PRIMARY KEY)');
            $bus = Bus::connect(new Memory(), $database);
            try {
                $heard = [];
                $bus->handlers(new class {
                    #[CommandHandler]
                    public function store(StoreCustomer $command, Transaction $transaction, Context $context): void
                    {
                        $transaction->execute('INSERT INTO customers (id) VALUES (?)', [$command->id]);
                        $context->publish(new CustomerStored($command->id));
                        if ((int) $command->id % 10 === 0) {
                            throw new \DomainException('no');
                        }
                    }
                }, self::listening(static function (CustomerStored $event) use (&$heard): void {
                    $heard[] = (int) $event->id;
                }));
                $bus->queue(self::QUEUE)->declare();
                $bus->sendAll(self::customers(50));

                self::drain($bus);

                \sort($heard);
                $expected = \array_values(\array_filter(\range(1, 50), static fn(int $id): bool => $id % 10 !== 0));
                self::assertSame($expected, $heard);
                self::assertSame(45, $database->execute('SELECT count(*) FROM customers')->value());
                self::assertSame(5, $bus->queue(self::QUEUE)->deadLetters()->count());
            } finally {
                $bus->close();
                $database->close();
                $empty->drop();
            }
        });
    }

    public function testAStatementThatCommitsTheTransactionOfAHandlerFailsTheMessage(): void
    {
        $this->inRuntime(static function (): void {
            $empty = new EmptyDatabase('mariadb');
            $database = Database::connect($empty->dsn());
            $database->execute('CREATE TABLE customers (id VARCHAR(40) PRIMARY KEY)');
            $database->execute('CREATE PROCEDURE store(id VARCHAR(40)) BEGIN INSERT INTO customers VALUES (id); COMMIT; END');
            $bus = Bus::connect(new Memory(), $database)->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $transaction->execute('CALL store(?)', [$command->id]);
                }
            });
            try {
                $bus->queue(self::QUEUE)->declare();
                $bus->send(self::customer(7));
                self::drain($bus);

                [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
                self::assertSame(TransactionFinishedException::class, $letter->errorClass());
                self::assertStringContainsString('::store() ended its Transaction: the statement committed its transaction', $letter->errorMessage());
            } finally {
                $bus->close();
                $database->close();
                $empty->drop();
            }
        });
    }
}
